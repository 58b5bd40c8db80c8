"""Hierarchical fairness against the procedure of section 4.3 step by step, with an exact test for each bottleneck."""

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from support.planner.allocation import Oracle, assert_valid, drawn, problem
from synergy_core.model.arrays import Floats
from synergy_core.model.snapshot import Tenant
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.problem import Problem, effective_throughput
from synergy_core.policies.allocation.programme.point import Point
from synergy_core.policies.allocation.programme.programme import Programme
from synergy_core.policies.allocation.shares import equal_share_throughput

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")


def _problem(seed: int, *, pairs: bool, plenty: bool) -> Problem:
    from dataclasses import replace

    made = drawn(seed, 7, pairs=pairs, plenty=plenty, kinds=3)
    tenants = (Tenant("a", 1.0, "fifo"), Tenant("b", 2.0, "fairness"), Tenant("c", 0.5, "fifo"))
    return replace(made, tenants=tenants, tenant=np.random.default_rng(seed).integers(-1, 3, 7))


def _weights(made: Problem, active: np.typing.NDArray[np.bool_]) -> Floats:
    weights = np.where((made.tenant < 0) & active, made.weight, 0.0)
    for index, tenant in enumerate(made.tenants):
        jobs = np.flatnonzero((made.tenant == index) & active)
        if not len(jobs):
            continue
        if tenant.policy == "fifo":
            weights[jobs[np.argmin(made.arrival[jobs])]] = tenant.weight
        else:
            weights[jobs] = tenant.weight * made.weight[jobs] / made.weight[jobs].sum()
    return weights


def _step_by_step(made: Problem) -> Floats:
    """Normalised throughputs: a linear programme for each level, one for each job to see whether it can rise."""
    oracle = Oracle(made)
    unit = equal_share_throughput(made) / made.scale
    normalised = cp.multiply(1 / unit, oracle.throughput)
    level, active = np.zeros(len(unit)), np.ones(len(unit), dtype=bool)
    while active.any():
        weights = _weights(made, active)
        z = cp.Variable()
        rise = oracle.best(cp.Maximize(z), [normalised >= level * (1 - 1e-8) + weights * z])
        level = level + weights * max(rise, 0.0)
        for job in np.flatnonzero(active):
            others = np.arange(len(unit)) != job
            most = oracle.best(cp.Maximize(normalised[job]), [normalised[others] >= level[others] * (1 - 1e-7)])
            active[job] = most > level[job] + 1e-5 * max(1.0, level[job])
    return level


@pytest.mark.parametrize(
    ("seed", "pairs", "plenty"),
    [(0, False, False), (1, True, False), (2, False, True), (3, True, True), (4, False, False)],
)
def test_levels_are_those_of_the_papers_procedure(seed: int, pairs: bool, plenty: bool) -> None:
    made = _problem(seed, pairs=pairs, plenty=plenty)
    found = solve(made, "hierarchical")
    assert_valid(made, found.x)
    assert found.status == "optimal"
    normalised = effective_throughput(made, found.x) / equal_share_throughput(made) * made.scale
    assert normalised == pytest.approx(_step_by_step(made), rel=1e-3, abs=1e-4)


def test_queues_that_live_on_the_last_free_type_take_no_programme_for_each_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 120 jobs in three queues most are served by what V100s and P100s leave, one after another."""
    from dataclasses import replace

    solved: list[float] = []
    solve_once = Programme.solve

    def counting(self: Programme, **numbers: Any) -> Point:
        point = solve_once(self, **numbers)
        solved.append(point.level)
        return point

    monkeypatch.setattr(Programme, "solve", counting)
    made = drawn(3, 120, kinds=12)
    tenants = tuple(Tenant(name, weight, "fifo") for name, weight in (("a", 1.0), ("b", 2.0), ("c", 3.0)))
    made = replace(made, tenants=tenants, tenant=np.arange(120) % 3, scale=np.ones(120), workers=np.full(3, 30.0))
    found = solve(made, "hierarchical")
    assert_valid(made, found.x)
    assert found.status == "optimal"
    assert len(solved) < 60


def test_of_a_fifo_queue_only_the_first_that_is_not_full_rises_however_many_wait() -> None:
    """Two GPUs at weights 1 and 1: the queue's first job has all of one GPU, the three behind it nothing."""
    made = problem(
        [[1.0]] * 6,
        [2],
        tenants=(Tenant("queue", 1.0, "fifo"), Tenant("fair", 1.0, "fairness")),
        tenant=[0, 0, 0, 0, 1, 1],
        arrival=[0, 1, 2, 3, 0, 0],
    )
    assert solve(made, "hierarchical").x[:, 0] == pytest.approx(np.array([1.0, 0.0, 0.0, 0.0, 0.5, 0.5]), abs=1e-6)
