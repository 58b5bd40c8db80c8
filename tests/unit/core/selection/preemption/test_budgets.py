"""Preemption budgets of jobs and of tenants."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.planner.planning import holding, job, node
from synergy_core.mechanisms import MECHANISMS
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import FieldError, Job, Snapshot, Tenant
from synergy_core.plan import plan
from synergy_core.policies import POLICIES
from synergy_core.selection.preemption.budgets import HOUR_S, out_of_budget, spent

NOW = 10_000.0
TREE = (
    Tenant("org", preemptions_per_hour=2),
    Tenant("red", parent="org", preemptions_per_hour=1, preempted=0),
    Tenant("blue", parent="org"),
)


def _runs(name: str, gpus: int = 1, **more: object) -> Job:
    return job(name, gpus, running=holding(name, ("n", gpus, 3 * gpus, 60 * gpus)), started_s=0.0, **more)


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Running jobs of a tree of tenants with budgets, and waiting ones of any class; some were preempted lately."""
    jobs: list[Job] = []
    taken = 0
    for index in range(draw(st.integers(1, 10))):
        gpus = draw(st.sampled_from((1, 1, 2)))
        name, runs = f"j{index}", taken + gpus <= 4 and draw(st.booleans())
        taken += gpus if runs else 0
        more = {
            "tenant": draw(st.sampled_from(("red", "blue", "org", "green"))),
            "priority": draw(st.sampled_from((0, 0, 7))),
            "urgent": draw(st.booleans()),
            "arrival_s": float(draw(st.integers(0, 5))),
            "attained_gpu_s": float(draw(st.integers(0, 6))),
            "preempted_s": tuple(draw(st.lists(st.sampled_from((NOW - 4000.0, NOW - 100.0)), max_size=2))),
        }
        jobs.append(_runs(name, gpus, **more) if runs else job(name, gpus, **more))
    red, blue = draw(st.sampled_from((0, 0, 1, 3))), draw(st.sampled_from((None, None, 1)))
    tenants = tuple(
        replace(
            tenant,
            preemptions_per_hour=draw(st.sampled_from((None, 0, 1, 2, 9))),
            preempted=draw(st.integers(0, 1)),
            guarantee={"V100": red} if red and tenant.name in ("org", "red") else {},
            limit={"V100": blue} if blue and tenant.name == "blue" else {},
        )
        for tenant in TREE
    )
    return Snapshot(
        nodes=(node("n", 4, cpus=12, gib=240, price_per_hour=1.0),), jobs=tuple(jobs), now=NOW, tenants=tenants
    )


configs = st.builds(
    PlanConfig,
    policy=st.sampled_from(sorted(POLICIES)),
    mechanism=st.sampled_from(sorted(set(MECHANISMS) - {"opt"})),
    mode=st.sampled_from(("round", "fill")),
    preemptions_per_hour=st.sampled_from((None, 1, 2)),
    preemption_payback=st.just(0.0),
    priorities_across=st.booleans(),
)


@given(clusters(), configs)
@settings(max_examples=200, deadline=None)
def test_no_plan_exceeds_a_budget(snapshot: Snapshot, config: PlanConfig) -> None:
    most = config.preemptions_per_hour
    jobs = {one.name: one for one in snapshot.jobs}
    preempted = [jobs[name] for name in plan(snapshot, config).preempted]
    for one in preempted:
        assert most is None or spent(one, NOW) < most
    for tenant in snapshot.tenants:
        below = {"org": {"org", "red", "blue"}}.get(tenant.name, {tenant.name})
        before = sum(other.preempted for other in snapshot.tenants if other.name in below)
        before += sum(spent(one, NOW) for one in snapshot.jobs if one.tenant in below)
        now = sum(one.tenant in below for one in preempted)
        assert now == 0 or tenant.preemptions_per_hour is None or before + now <= tenant.preemptions_per_hour


def test_a_job_whose_budget_is_spent_stays() -> None:
    runs, new = _runs("runs", attained_gpu_s=100.0), job("new")
    config = PlanConfig(policy="las", preemption_payback=0.0, preemptions_per_hour=1)

    def preempted(*moments: float) -> tuple[str, ...]:
        jobs = (replace(runs, preempted_s=moments), new)
        return plan(Snapshot(nodes=(node("n", 1),), jobs=jobs, now=NOW), config).preempted

    assert preempted() == ("runs",)
    assert preempted(NOW - HOUR_S) == ("runs",)
    assert preempted(NOW - HOUR_S + 1.0) == ()


def test_a_tenants_budget_leaves_the_lowest_in_the_queue() -> None:
    jobs = tuple(_runs(name, tenant="red") for name in ("a", "b", "c"))
    snapshot = Snapshot(nodes=(node("n", 3),), jobs=jobs, now=NOW, tenants=(Tenant("red", preemptions_per_hour=2),))
    assert out_of_budget(snapshot, PlanConfig(), ("b", "c", "a")) == {"b"}
    assert out_of_budget(snapshot, PlanConfig(), ("b", "c", "a"), {"a"}) == frozenset()
    gone = replace(snapshot, tenants=(Tenant("red", preemptions_per_hour=2, preempted=1),))
    assert out_of_budget(gone, PlanConfig(), ("b", "c", "a")) == {"b", "c"}
    assert out_of_budget(replace(snapshot, tenants=()), PlanConfig(), ("a", "b", "c")) == frozenset()


@pytest.mark.parametrize("policy", ["fifo", "las", "max-min-fairness"])
def test_a_job_that_is_never_preempted_uses_up_no_budget(policy: str) -> None:
    """It is the lowest in the queue, and the budget is for the job above it: else no guarantee would be met."""
    jobs = (
        _runs("guest", tenant="guest", arrival_s=0.0),
        _runs("never", tenant="guest", arrival_s=1.0, attained_gpu_s=9e4, preemptible=False),
        job("owner", tenant="owner", arrival_s=2.0),
    )
    tenants = (Tenant("owner", guarantee={"V100": 1}), Tenant("guest", preemptions_per_hour=1))
    snapshot = Snapshot(nodes=(node("n", 2, cpus=6, gib=120),), jobs=jobs, now=NOW, tenants=tenants)
    assert plan(snapshot, PlanConfig(policy=policy)).preempted == ("guest",)


@pytest.mark.parametrize("wrong", [0, -1])
def test_a_budget_of_no_preemptions_is_refused(wrong: int) -> None:
    with pytest.raises(FieldError, match="preemptions_per_hour: must be at least 1"):
        plan(Snapshot(nodes=(node("n"),), jobs=()), PlanConfig(preemptions_per_hour=wrong))
