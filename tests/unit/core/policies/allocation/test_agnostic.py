"""Heterogeneity-agnostic allocations: no type is better than another, so a job's time is spread over all it can use."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.planner.allocation import assert_valid, drawn, problem
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.agnostic import agnostic, evened
from synergy_core.policies.allocation.problem import time_used


def test_a_job_that_cannot_use_a_type_does_not_push_all_others_onto_that_type() -> None:
    made = problem([[4.0, 2.0, 1.0], [6.0, 5.0, 0.0]], [12, 12, 12], scale=[1, 2])
    found = solve(made, "max-min-fairness", aware=False)
    assert found.x == pytest.approx(np.array([[1 / 3, 1 / 3, 1 / 3], [1 / 2, 1 / 2, 0.0]]))


def test_on_a_full_cluster_jobs_that_can_use_the_same_types_are_on_each_for_equally_long() -> None:
    """Four jobs that can use both types, and three that cannot use the second, which has room for all of its time."""
    made = problem([[4.0, 1.0]] * 4 + [[4.0, 0.0]] * 3, [3, 3], scale=[1] * 6 + [2])
    for policy in ("max-min-fairness-water-filling", "fifo", "finish-time-fairness"):
        x = solve(made, policy, aware=False, efficient=True).x
        assert_valid(made, x)
        parts = x[:4] / x[:4].sum(axis=1, keepdims=True)
        assert parts == pytest.approx(np.repeat(parts[:1], 4, axis=0)), policy
        assert (made.scale @ x) == pytest.approx(made.workers, abs=1e-6), policy


def test_where_the_types_are_full_the_others_make_room_as_far_as_they_must() -> None:
    made = problem([[4.0, 1.0], [4.0, 1.0], [4.0, 0.0]], [1, 2])
    found = solve(made, "max-min-fairness-water-filling", aware=False)
    assert found.x == pytest.approx(np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]), abs=1e-7)
    assert_valid(made, found.x)


@given(seed=st.integers(0, 10_000), plenty=st.booleans(), pairs=st.booleans())
def test_everybody_keeps_all_of_its_time(seed: int, plenty: bool, pairs: bool) -> None:
    made = drawn(seed, 6, plenty=plenty, pairs=pairs)
    found = solve(made, "max-min-fairness", aware=False)
    assert_valid(made, found.x)
    view = agnostic(made)
    x = solve(view, "max-min-fairness").x
    spread = evened(view, x)
    assert time_used(view, spread) == pytest.approx(time_used(view, x), rel=1e-9)
    assert_valid(view, spread)
    if plenty and not pairs:
        can = (view.throughputs > 0) * view.workers
        assert spread / spread.sum(axis=1, keepdims=True) == pytest.approx(can / can.sum(axis=1, keepdims=True))


def test_a_gpu_costs_what_the_gpus_of_its_pool_cost_on_average() -> None:
    """One GPU at 8 and three at 4: 20 for four."""
    view = agnostic(problem([[2.0, 1.0]], [1, 3], cost=[8.0, 4.0]))
    assert (view.workers.tolist(), view.cost.tolist()) == ([4.0], [5.0])
