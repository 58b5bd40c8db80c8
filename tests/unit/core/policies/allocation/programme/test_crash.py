"""The first basis of large programmes: the optimum is what it is without, and the solver has little left to do."""

from dataclasses import replace

import numpy as np
import pytest

from support.planner.allocation import assert_valid, drawn, problem, with_placements
from synergy_core.model.snapshot import Tenant
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.problem import Problem
from synergy_core.policies.allocation.programme.activities import activities
from synergy_core.policies.allocation.programme.programme import Programme
from synergy_core.policies.allocation.programme.starting_basis import Basis, Market
from synergy_core.policies.allocation.programme.symmetry import apart

POLICIES = (
    "max-min-fairness",
    "makespan",
    "finish-time-fairness",
    "max-throughput",
    "fifo",
    "min-cost",
    "min-cost-slo",
    "max-min-fairness-water-filling",
    "hierarchical",
)


def _large(seed: int) -> Problem:
    """More classes of jobs than start with an interior point; with spread placements, or a type without workers."""
    rng = np.random.default_rng(seed)
    made = drawn(seed, 230, plenty=seed == 3)
    jobs = len(made.jobs)
    made = replace(
        made,
        slo=np.where(rng.random(jobs) < 0.1, 300 * made.steps / made.throughputs[:, 0], np.inf),
        tenant=rng.integers(0, 3, jobs),
        tenants=tuple(Tenant(f"t{index}", 1.0 + index) for index in range(3)),
    )
    if seed == 1:
        return with_placements(made, seed)
    return replace(made, workers=made.workers * [1, 0, 1]) if seed == 2 else made


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", POLICIES)
def test_the_optimum_is_the_same_without_it(seed: int, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = _large(seed)
    found = solve(made, policy)
    assert_valid(made, found.x)
    monkeypatch.setattr(Market, "basis", _none)
    monkeypatch.setattr(Market, "best_ratio", lambda *_: 0.0)
    without = solve(made, policy)
    assert (found.status, without.status) == ("optimal", "optimal")
    assert found.objective == pytest.approx(without.objective, rel=1e-8)


def _none(market: Market, *_: object) -> Basis:
    """A basis of slacks alone, in which nobody runs."""
    jobs = np.ones(len(market.members), dtype=bool)
    return Basis(np.zeros(market.size, dtype=bool), jobs, jobs, np.ones(len(market.workers), dtype=bool))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["level", "gain"])
def test_as_many_are_basic_as_there_are_rows(seed: int, kind: str) -> None:
    made = drawn(seed, 60)
    acts, jobs = activities(made), len(made.jobs)
    market = Market(acts, np.ones(jobs), made.workers)
    fastest = made.throughputs.max(axis=1)
    if kind == "level":
        basis = market.basis(np.zeros(jobs), fastest * made.weight, np.zeros(len(acts)))
    else:
        basis = market.basis(np.zeros(jobs), None, acts.first_rate)
    basic = sum(int(part.sum()) for part in (basis.activities, basis.speeds, basis.times, basis.workers))
    assert basic + (kind == "level") == 2 * jobs + len(made.workers)


def test_where_many_different_jobs_hold_each_other_at_one_level_the_basis_is_all_but_optimal() -> None:
    """The dual simplex alone takes more than a step for each job."""
    rng = np.random.default_rng(0)
    speeds = rng.uniform(1, 10, (600, 1)) * np.sort(rng.uniform(0.1, 1, (600, 3)))[:, ::-1]
    made = problem(speeds, [150, 150, 150])
    acts = activities(made)
    programme = Programme(apart(acts, 600), made.workers, Budget())
    programme.solve(base=np.zeros(600), direction=speeds.mean(axis=1))
    assert programme._highs.getInfo().simplex_iteration_count < 100
