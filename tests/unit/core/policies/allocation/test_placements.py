"""Few and many servers as columns of their own (Gavel, section 3.1): against a second solver, and as properties."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.planner.allocation import Oracle, assert_valid, drawn, with_placements
from synergy_core.policies.allocation import ALLOCATION_POLICIES, solve
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.deadlines import reached
from synergy_core.policies.allocation.problem import Problem, effective_throughput

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")

POLICIES = {
    "finish-time-fairness": Oracle.finish_time_fairness,
    "fifo": Oracle.fifo,
    "makespan": Oracle.makespan,
    "max-min-fairness": Oracle.max_min_fairness,
    "max-min-fairness-water-filling": Oracle.max_min_fairness,
    "max-throughput": Oracle.max_throughput,
    "min-cost": Oracle.cost,
}
SEEDS = st.integers(0, 10_000)


@pytest.mark.parametrize(("jobs", "pairs"), [(6, False), (25, False), (8, True)])
def test_the_objective_is_the_second_solvers(jobs: int, pairs: bool) -> None:
    made = with_placements(drawn(jobs, jobs, pairs=pairs), jobs)
    for policy, expected in POLICIES.items():
        found = solve(made, policy)
        assert_valid(made, found.x)
        assert found.objective == pytest.approx(expected(Oracle(made)), rel=1e-5), policy


@settings(max_examples=30)
@given(seed=SEEDS, policy=st.sampled_from(sorted(ALLOCATION_POLICIES)), aware=st.booleans())
def test_every_policy_keeps_within_the_workers_that_both_placements_share(seed: int, policy: str, aware: bool) -> None:
    made = with_placements(drawn(seed, 6, pairs=seed % 2 == 0), seed)
    assert_valid(made, solve(made, policy, aware=aware).x)


@settings(max_examples=40)
@given(seed=SEEDS, policy=st.sampled_from(sorted(POLICIES)))
def test_it_is_at_least_as_good_as_with_the_slower_placement_for_all(seed: int, policy: str) -> None:
    made = with_placements(drawn(seed, 6), seed)
    x, types = _of_the_slower(made, policy), len(made.types)
    slow = made.throughputs[:, types:] < made.throughputs[:, :types]
    slow &= made.throughputs[:, types:] > 0
    there = np.concatenate([np.where(slow, 0.0, x), np.where(slow, x, 0.0)], axis=1)
    worse, best = ALLOCATION_POLICIES[policy].objective(made, there), solve(made, policy).objective
    slack = 1e-6 * max(1.0, abs(worse))
    assert best <= worse + slack if ALLOCATION_POLICIES[policy].less_is_better else best >= worse - slack


def _of_the_slower(made: Problem, policy: str) -> np.typing.NDArray[np.float64]:
    """X, jobs x types, of the problem in which every job lies in the way in which it is slower."""
    types = len(made.types)
    near, far = made.throughputs[:, :types], made.throughputs[:, types:]
    slower = np.where(far > 0, np.minimum(near, far), near)
    plain = replace(
        made,
        columns=made.types,
        column_type=np.arange(types),
        throughputs=slower,
        pair_throughputs=made.pair_throughputs[:, :types],
    )
    return solve(plain, policy).x


@settings(max_examples=30)
@given(seed=SEEDS, policy=st.sampled_from(sorted(POLICIES)), aware=st.booleans())
def test_where_both_placements_are_alike_it_is_worth_what_the_plain_problem_is(
    seed: int, policy: str, aware: bool
) -> None:
    made = drawn(seed, 6)
    both = solve(with_placements(made, seed, alike=True), policy, aware=aware).objective
    assert both == pytest.approx(solve(made, policy, aware=aware).objective, rel=1e-6)


def test_deadlines_are_reached_in_the_better_placement() -> None:
    made = drawn(3, 6, plenty=True)
    far = with_placements(made, 3)
    types = len(made.types)
    far = replace(far, throughputs=np.concatenate([made.throughputs, made.throughputs * 2.0], axis=1))
    fastest = far.throughputs.max(axis=1)
    assert reached(far, fastest, np.ones(6), Budget()) == pytest.approx(np.ones(6))
    plain = reached(made, np.minimum(fastest, made.throughputs.max(axis=1)), np.ones(6), Budget())
    assert plain == pytest.approx(np.ones(6))
    found = solve(replace(far, slo=far.steps / fastest * 1.001), "min-cost-slo")
    assert (effective_throughput(far, found.x) >= fastest / 1.002).all()
    assert found.x[:, :types].sum() == pytest.approx(0.0, abs=1e-2)
