"""The walk along the queue tells for which job it takes a place, and by which right."""

import pytest

from support.planner.planning import holding, job, node
from synergy_core.explain.preemptions import Preemption, PreemptionRule, preemptions
from synergy_core.mechanisms import MECHANISMS
from synergy_core.model.answer import Displaced
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Snapshot, Tenant
from synergy_core.plan import plan

NOW = 10_000.0
OWNER = Tenant("owner", guarantee={"V100": 1})


def _runs(name: str, where: str = "n", **more: object) -> Job:
    return job(name, running=holding(name, (where, 1, 3, 60)), started_s=0.0, **more)


def _told(snapshot: Snapshot, mechanism: str, policy: str = "fifo") -> tuple[Preemption, ...]:
    config = PlanConfig(policy=policy, mechanism=mechanism, preemption_payback=0.0)
    return preemptions(snapshot, plan(snapshot, config), across=False)


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_a_guarantee_is_told_with_the_job_that_it_serves(mechanism: str) -> None:
    jobs = (_runs("runs", tenant="guest"), job("owns", tenant="owner", arrival_s=9.0))
    snapshot = Snapshot(nodes=(node("n", 1, cpus=3, gib=60),), jobs=jobs, now=NOW, tenants=(OWNER,))
    assert _told(snapshot, mechanism) == (Preemption("runs", PreemptionRule.GUARANTEE, ("owns",)),)


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_a_lowered_limit_is_told_and_not_the_guarantee_that_gets_the_gpu(mechanism: str) -> None:
    """The limit alone takes the second run, whoever comes after."""
    jobs = (_runs("a", tenant="guest"), _runs("b", tenant="guest", arrival_s=1.0))
    tenants = (OWNER, Tenant("guest", limit={"V100": 1}))
    snapshot = Snapshot(nodes=(node("n", 2, cpus=6, gib=120),), jobs=jobs, now=NOW, tenants=tenants)
    assert _told(snapshot, mechanism) == (Preemption("b", PreemptionRule.TENANT_LIMIT),)


@pytest.mark.parametrize("mechanism", ["tune", "proportional", "greedy"])
def test_within_a_tenants_guarantee_the_policys_order_is_told(mechanism: str) -> None:
    jobs = (_runs("runs", tenant="owner", attained_gpu_s=100.0), job("new", tenant="owner"))
    snapshot = Snapshot(nodes=(node("n", 1, cpus=3, gib=60),), jobs=jobs, now=NOW, tenants=(OWNER,))
    assert _told(snapshot, mechanism, "las") == (Preemption("runs", PreemptionRule.POLICY, ("new",)),)


def test_a_plan_says_in_order_which_places_it_takes_and_only_of_runs_that_end() -> None:
    """A displaced job that finds another place is still displaced: its run ends."""
    jobs = (
        _runs("bound", tenant="guest", nodes=("n",)), _runs("free", "m", tenant="guest"),
        job("owns", tenant="owner", nodes=("m",)),
    )  # fmt: skip
    nodes = (node("m", 1, cpus=3, gib=60), node("n", 2, cpus=6, gib=120))
    snapshot = Snapshot(nodes=nodes, jobs=jobs, now=NOW, tenants=(OWNER,))
    found = plan(snapshot, PlanConfig(policy="fifo", preemption_payback=0.0))
    assert found.displaced == (Displaced("free", "guarantee", ("owns",)),)
    assert {one.job for one in found.allocations} == {"bound", "free", "owns"}
