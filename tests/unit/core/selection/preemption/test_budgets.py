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
from synergy_core.selection.preemption.budgets import HOUR_S, TenantBudgets, spent

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
@settings(max_examples=200)
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


def test_what_is_left_of_budgets_counts_jobs_that_are_gone_and_those_of_children() -> None:
    jobs = (_runs("a", tenant="red", preempted_s=(NOW - 10.0,)), _runs("b", tenant="blue", preempted_s=(NOW - 4000.0,)))
    tree = (replace(TREE[0], preemptions_per_hour=5), replace(TREE[1], preempted=2), TREE[2])
    snapshot = Snapshot(nodes=(node("n", 2),), jobs=jobs, now=NOW, tenants=tree)
    assert TenantBudgets(snapshot).left == {"org": 2, "red": 0}
    assert not TenantBudgets(replace(snapshot, tenants=()))


def test_units_are_taken_whole_while_every_budget_above_them_has_enough() -> None:
    jobs = {one.name: one for one in (_runs("r", tenant="red"), _runs("s", tenant="red"), _runs("t", tenant="blue"))}
    budgets = TenantBudgets(Snapshot(nodes=(node("n", 3),), jobs=tuple(jobs.values()), now=NOW, tenants=TREE))
    both, blue, red = (jobs["r"], jobs["s"]), (jobs["t"],), (jobs["r"],)
    assert budgets.within([both, blue, red]) == [blue, red]
    assert budgets.within([red, blue], [jobs["t"]]) == [red]


@pytest.mark.parametrize("policy", ["fifo", "las", "max-min-fairness"])
def test_a_tenants_budget_is_spent_for_guarantees_first(policy: str) -> None:
    """The policy alone would take the place of the other job of the tenant, too."""
    jobs = (
        _runs("low", tenant="guest", arrival_s=3.0, attained_gpu_s=9e4),
        _runs("lower", tenant="guest", arrival_s=4.0, attained_gpu_s=9e5),
        job("first", tenant="guest", arrival_s=1.0),
        job("owns", tenant="owner", arrival_s=5.0),
    )
    tenants = (Tenant("owner", guarantee={"V100": 1}), Tenant("guest", preemptions_per_hour=1))
    snapshot = Snapshot(nodes=(node("n", 2, cpus=6, gib=120),), jobs=jobs, now=NOW, tenants=tenants)
    found = plan(snapshot, PlanConfig(policy=policy, preemption_payback=0.0))
    assert "owns" in {one.job for one in found.allocations}
    assert len(found.preempted) == 1


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
def test_a_budget_is_not_spent_on_the_wrong_gpu_type(mechanism: str) -> None:
    """The lowest job in the queue runs on a type of which no tenant has a guarantee."""
    place = holding("t4", ("t", 1, 3, 60), gpu_type="T4")
    on_t4 = job("t4", tenant="guest", arrival_s=9.0, gpu_types=("T4",), running=place)
    jobs = (_runs("v100", tenant="guest"), on_t4, job("owns", tenant="owner", arrival_s=20.0, gpu_types=("V100",)))
    tenants = (Tenant("owner", guarantee={"V100": 1}), Tenant("guest", preemptions_per_hour=1))
    nodes = (node("n", 1), node("t", 1, gpu_type="T4"))
    snapshot = Snapshot(nodes=nodes, jobs=jobs, now=NOW, tenants=tenants)
    assert plan(snapshot, PlanConfig(policy="fifo", mechanism=mechanism)).preempted == ("v100",)


def test_a_place_that_the_budget_cannot_free_takes_none_of_it() -> None:
    """The gang needs four places of which the budget allows two. The job behind it needs one."""
    there = [holding(f"guest{n}", ("m" if n == 4 else "n", 1, 3, 60)) for n in range(5)]
    guests = tuple(job(one.job, tenant="guest", running=one) for one in there)
    gang = job("gang", 4, tenant="big", arrival_s=1.0)
    one = job("one", tenant="small", arrival_s=2.0)
    tenants = (
        Tenant("big", guarantee={"V100": 4}), Tenant("small", guarantee={"V100": 1}),
        Tenant("guest", preemptions_per_hour=2),
    )  # fmt: skip
    cluster = (node("n", 4, cpus=12, gib=240), node("m", 1, cpus=3, gib=60))
    snapshot = Snapshot(nodes=cluster, jobs=(*guests, gang, one), now=NOW, tenants=tenants)
    found = plan(snapshot, PlanConfig(policy="fifo"))
    assert len(found.preempted) == 1
    assert {one.job for one in found.allocations} == {"one", *(guest.name for guest in guests)} - {*found.preempted}


@pytest.mark.parametrize("policy", ["fifo", "las", "max-min-fairness"])
def test_a_guarantee_waits_for_a_tenants_budget_for_an_hour_at_most(policy: str) -> None:
    """Eight must leave at once, and one an hour may."""
    guests = tuple(_runs(f"guest{n}", tenant="guest", attained_gpu_s=10.0) for n in range(8))
    tenants = (Tenant("owner", guarantee={"V100": 8}), Tenant("guest", preemptions_per_hour=1))

    def preempted(waited_s: float, **more: object) -> int:
        gang = job("gang", 8, tenant="owner", arrival_s=NOW - waited_s, waiting_s=waited_s, **more)
        snapshot = Snapshot(
            nodes=(node("n", 8, cpus=24, gib=480),), jobs=(*guests, gang), now=NOW, tenants=tenants
        )  # fmt: skip
        return len(plan(snapshot, PlanConfig(policy=policy, preemption_payback=0.0)).preempted)

    assert preempted(HOUR_S - 1.0) == 0
    assert preempted(HOUR_S) == 8


def test_no_other_job_goes_beyond_a_budget_beside_a_guarantee_that_waited_for_an_hour() -> None:
    guests = tuple(_runs(f"guest{n}", tenant="guest", arrival_s=float(n)) for n in range(4))
    waited = job("waited", 2, tenant="owner", arrival_s=50.0, waiting_s=HOUR_S)
    first = job("first", 1, tenant="guest", arrival_s=-1.0)
    tenants = (Tenant("owner", guarantee={"V100": 2}), Tenant("guest", preemptions_per_hour=1))
    snapshot = Snapshot(
        nodes=(node("n", 4, cpus=12, gib=240),), jobs=(*guests, waited, first), now=NOW, tenants=tenants
    )
    assert plan(snapshot, PlanConfig(policy="fifo")).preempted == ("guest2", "guest3")


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
