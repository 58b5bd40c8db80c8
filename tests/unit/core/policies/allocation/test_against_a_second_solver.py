"""Objectives equal to those of a second solver on random problems: with pairs, weights, several workers a job."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.planner.allocation import Oracle, assert_valid, drawn
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.policies.cost import slo_throughput
from synergy_core.policies.allocation.problem import Problem, effective_throughput

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")

# jobs, pairs, kinds of jobs (None: all different), far more workers than jobs
SHAPES = [
    (5, False, None, False),
    (40, False, 6, False),
    (6, True, None, False),
    (14, True, 3, False),
    (6, True, None, True),
]
EXAMPLES = settings().max_examples
MOST_JOBS = {False: 200, True: 40} if EXAMPLES > 100 else {False: 20, True: 8}
POLICIES = {
    "max-min-fairness": Oracle.max_min_fairness,
    "max-min-fairness-water-filling": Oracle.max_min_fairness,
    "max-throughput": Oracle.max_throughput,
    "makespan": Oracle.makespan,
    "fifo": Oracle.fifo,
    "finish-time-fairness": Oracle.finish_time_fairness,
    "min-cost": Oracle.cost,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_objective_is_the_second_solvers(shape: tuple[int, bool, int | None, bool]) -> None:
    jobs, pairs, kinds, plenty = shape
    made = drawn(jobs, jobs, pairs=pairs, kinds=kinds, plenty=plenty)
    for policy, expected in POLICIES.items():
        found = solve(made, policy)
        assert_valid(made, found.x)
        assert found.status == "optimal", policy
        assert found.objective == pytest.approx(expected(Oracle(made)), rel=1e-5), policy


@pytest.mark.timeout(3600)
@settings(max_examples=EXAMPLES // 5)
@given(data=st.data())
def test_so_is_that_of_any_problem(data: st.DataObject) -> None:
    """Of up to 200 jobs, with pairs 40, where the search is long (`make properties`), else of 20, with pairs 8."""
    pairs, policy = data.draw(st.booleans()), data.draw(st.sampled_from(sorted(POLICIES)))
    jobs = data.draw(st.integers(5, MOST_JOBS[pairs]))
    kinds = data.draw(st.none() | st.integers(2, jobs))
    made = drawn(data.draw(st.integers(0, 10_000)), jobs, pairs=pairs, kinds=kinds, plenty=data.draw(st.booleans()))
    found = solve(made, policy)
    assert_valid(made, found.x)
    assert found.status == "optimal"
    assert found.objective == pytest.approx(POLICIES[policy](Oracle(made)), rel=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_cost_with_deadlines(seed: int) -> None:
    made = _with_slos(drawn(seed, 8, pairs=seed == 2), seed)
    found = solve(made, "min-cost-slo")
    assert_valid(made, found.x)
    assert (effective_throughput(made, found.x) >= slo_throughput(made) * (1 - 1e-8)).all()
    assert found.objective == pytest.approx(Oracle(made).cost(slo_throughput(made)), rel=1e-5)


def _with_slos(made: Problem, seed: int) -> Problem:
    """Half of the jobs are due at a throughput that the makespan's allocation has to spare."""
    from dataclasses import replace

    speed = effective_throughput(made, solve(made, "makespan").x)
    slo = np.where(np.arange(len(speed)) % 2 == 0, made.steps / speed * (1.3 + seed), np.inf)
    return replace(made, slo=slo)
