"""AlloX where jobs have several workers: on types that have as many, beside others if there is room."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.planner.allocation import assert_valid, drawn, problem
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.policies import allox
from synergy_core.policies.allocation.problem import workers_used


def test_a_job_wider_than_a_type_runs_where_there_are_workers_for_it() -> None:
    """On the first type, which has four workers, it would be four times as fast."""
    made = problem([(40.0, 10.0), (4.0, 1.0)], [4, 8], scale=[8, 1], steps=[1000, 100_000])
    found = solve(made, "allox")
    assert np.array_equal(found.x, [[0.0, 1.0], [1.0, 0.0]])
    assert found.objective == pytest.approx((100.0 + 25_000.0) / 2)


def test_a_job_that_does_not_fit_beside_others_has_free_workers_of_another_type() -> None:
    """Both are assigned to the first type, on which they are done ten times as soon."""
    made = problem([(10.0, 1.0), (10.0, 1.0)], [4, 4], scale=[3, 3])
    assert np.array_equal(solve(made, "allox").x, [[1.0, 0.0], [0.0, 1.0]])


def test_who_waits_for_its_turn_on_a_fast_worker_is_not_sent_to_a_slow_one() -> None:
    """Both in turn on the fast one are done after 100 and 200 s; on the slow one a job takes 1,000."""
    made = problem([(10.0, 1.0), (10.0, 1.0)], [1, 1])
    found = solve(made, "allox")
    assert found.x.sum(axis=0).tolist() == [1.0, 0.0]
    assert found.objective == pytest.approx(150.0)


def test_a_job_too_wide_for_every_type_is_left_out_and_said_so() -> None:
    made = problem([(4.0, 1.0), (4.0, 1.0)], [2, 2], scale=[3, 1])
    found = solve(made, "allox")
    assert np.array_equal(found.x, [[0.0, 0.0], [1.0, 0.0]])
    assert (found.objective, found.note) == (250.0, "1 jobs need more workers than any type has")
    alone = solve(problem([(4.0, 1.0)], [2, 2], scale=[3]), "allox")
    assert not alone.x.any()
    assert alone.objective == np.inf


def test_far_more_workers_than_jobs_take_no_more_memory() -> None:
    """The assignment had a column for each worker."""
    found = solve(problem([(4.0, 1.0), (4.0, 1.0)], [10**9, 10**9]), "allox")
    assert np.array_equal(found.x, [[1.0, 0.0], [1.0, 0.0]])


@pytest.mark.parametrize("seed", range(20))
def test_no_worker_idles_while_a_job_whose_turn_it_is_could_have_it(seed: int) -> None:
    made = drawn(seed, 30)
    found = solve(made, "allox")
    assert_valid(made, found.x)
    free = made.workers - workers_used(made, found.x)
    waits = found.x.sum(axis=1) == 0.0
    fits = (made.throughputs > 0) & (made.scale[:, None] <= free)
    if waits.sum() < 5:  # far fewer than workers: it is everybody's turn
        assert not (fits & waits[:, None]).any()


@given(st.lists(st.floats(1.0, 1e6), min_size=1, max_size=30, unique=True), st.integers(1, 8))
def test_on_one_type_the_order_of_length_is_the_assignment(cost: list[float], workers: int) -> None:
    known = allox.on_one_type(np.array(cost), workers)
    assert known is not None
    types, places = allox.by_assignment(np.array(cost)[:, None], np.array([float(workers)]))
    assert known[0].tolist() == types.tolist()
    assert (known[1] * cost).sum() == pytest.approx((places * cost).sum())
    if min(np.diff(sorted(cost)), default=1.0) > 1e-3:
        assert known[1].tolist() == places.tolist()


def test_equally_long_jobs_that_would_get_different_places_are_left_to_the_assignment() -> None:
    assert allox.on_one_type(np.array([2.0, 2.0, 1.0]), 1) is None
    assert allox.on_one_type(np.array([2.0, 2.0, 1.0]), 2) is not None
    assert allox.on_one_type(np.array([2.0, 1.0]), 0) is None
