"""A job that fits into its tenant's guarantee and waits is told what holds its GPUs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.planner.planning import holding, job, node, reasons
from synergy_core.mechanisms import MECHANISMS
from synergy_core.model.config import Mode, PlanConfig
from synergy_core.model.snapshot import Job, Placement, Snapshot, Tenant
from synergy_core.plan import plan

NOW = 10_000.0
OWNER = Tenant("owner", guarantee={"V100": 4})
WALKING = sorted(set(MECHANISMS) - {"opt"})


def cluster(*jobs: Job, tenants: tuple[Tenant, ...] = (OWNER,), nodes: int = 1) -> Snapshot:
    """Nodes of four GPUs."""
    there = tuple(node(f"n{index}", 4, cpus=12, gib=240) for index in range(nodes))
    return Snapshot(nodes=there, jobs=jobs, tenants=tenants, now=NOW)


def guest(name: str, gpus: int = 1, where: str = "n0", **more: object) -> Job:
    held = holding(name, (where, gpus, 3 * gpus, 60 * gpus))
    return job(name, gpus, running=held, started_s=0.0, **{"tenant": "guest", **more})


def message(snapshot: Snapshot, config: PlanConfig, name: str = "owns") -> str:
    return next(one.message for one in plan(snapshot, config).waiting if one.job == name)


@pytest.mark.parametrize("mechanism", WALKING)
@pytest.mark.parametrize("mode", ["round", "fill"])
def test_spent_budgets_of_tenants_and_of_jobs_are_told(mechanism: str, mode: Mode) -> None:
    guests = tuple(guest(f"g{index}") for index in range(4))
    owns = job("owns", 3, tenant="owner", arrival_s=9.0)
    config = PlanConfig(policy="fifo", mechanism=mechanism, mode=mode, preemption_payback=0.0)
    few = cluster(*guests, owns, tenants=(OWNER, Tenant("guest", preemptions_per_hour=1)))
    assert reasons(plan(few, config)) == {"owns": "GuaranteeWaitsForBudgets"}
    assert "guaranteed 4 of the V100 GPUs and has 0, so the job's 3 are guaranteed" in message(few, config)
    assert "for an hour at most" in message(few, config)
    often = tuple(replace(one, preempted_s=(NOW - 60.0,)) for one in guests[:2])
    alone = cluster(*often, *guests[2:], owns)
    assert reasons(plan(alone, replace(config, preemptions_per_hour=1))) == {"owns": "GuaranteeWaitsForBudgets"}
    assert "Jobs that have 2 of them" in message(alone, replace(config, preemptions_per_hour=1))


@pytest.mark.parametrize("mechanism", WALKING)
@pytest.mark.parametrize("mode", ["round", "fill"])
def test_runs_that_are_not_preempted_now_are_told(mechanism: str, mode: Mode) -> None:
    config = PlanConfig(policy="fifo", mechanism=mechanism, mode=mode, minimum_run_s=60.0)
    never, young = guest("never", 2, preemptible=False), guest("young", run_started_s=NOW - 1.0)
    snapshot = cluster(never, young, guest("old"), job("owns", 3, tenant="owner"))
    assert reasons(plan(snapshot, config))["owns"] == "GuaranteeWaitsForRuns"
    assert "Runs that have 3 of them" in message(snapshot, config)


@pytest.mark.parametrize("mechanism", WALKING)
def test_between_rounds_the_rounds_end_is_told(mechanism: str) -> None:
    config = PlanConfig(policy="fifo", mechanism=mechanism, mode="fill")
    snapshot = cluster(guest("a", 2), guest("b", 2), job("owns", 3, tenant="owner"))
    assert reasons(plan(snapshot, config)) == {"owns": "GuaranteeAtRoundEnd"}
    assert "owns" not in reasons(plan(snapshot, replace(config, mode="round", preemption_payback=0.0)))


@pytest.mark.parametrize("mechanism", sorted({"tune", "proportional", "opt"}))
@pytest.mark.parametrize("mode", ["round", "fill"])
@pytest.mark.parametrize("preemptible", [True, False])
def test_a_gang_that_needs_a_node_is_told_that_guaranteed_jobs_lie_on_each(
    mechanism: str, mode: Mode, preemptible: bool
) -> None:
    """Each node of four has one GPU of a guaranteed job."""
    tenants = (OWNER, Tenant("other", guarantee={"V100": 2}))
    others = tuple(guest(f"o{n}", where=f"n{n}", tenant="other", preemptible=preemptible) for n in range(2))
    gang = job("owns", 4, tenant="owner", placement="consolidate")
    config = PlanConfig(policy="fifo", mechanism=mechanism, mode=mode)
    snapshot = cluster(*others, gang, tenants=tenants, nodes=2)
    assert reasons(plan(snapshot, config)) == {"owns": "GuaranteeScattered"}
    anywhere = cluster(*others, replace(gang, placement="auto"), tenants=tenants, nodes=2)
    assert reasons(plan(anywhere, config)) == {}


@given(
    st.lists(
        st.tuples(st.integers(1, 2), st.booleans(), st.booleans(), st.sampled_from(("guest", "rich"))), max_size=4
    ),
    st.integers(1, 4),
    st.sampled_from((None, 0, 1, 2)),
    st.sampled_from(("fifo", "las", "srtf")),
    st.sampled_from(("tune", "proportional", "greedy")),
)
def test_whatever_holds_the_gpus_the_reason_names_it(
    runs: list[tuple[int, bool, bool, str]], gpus: int, budget: int | None, policy: str, mechanism: str
) -> None:
    """On one node nothing is scattered: without what the reason names, the job runs."""
    jobs: list[Job] = []
    for index, (size, preemptible, young, tenant) in enumerate(runs):
        if sum(one.gpus for one in jobs) + size <= 4:
            began = NOW - 1.0 if young else 0.0
            jobs.append(guest(f"g{index}", size, tenant=tenant, preemptible=preemptible, run_started_s=began))
    config = PlanConfig(policy=policy, mechanism=mechanism, minimum_run_s=60.0, preemption_payback=0.0)
    tenants = (OWNER, Tenant("guest", preemptions_per_hour=budget))
    snapshot = cluster(*jobs, job("owns", gpus, tenant="owner", arrival_s=9.0), tenants=tenants)
    reason = reasons(plan(snapshot, config)).get("owns")
    assert reason in (None, "GuaranteeWaitsForBudgets", "GuaranteeWaitsForRuns")
    free = replace(snapshot, tenants=(OWNER,))
    firm_only = reasons(plan(free, config)).get("owns")
    if reason == "GuaranteeWaitsForBudgets":
        assert firm_only is None, "without budgets the job runs"
    loose = replace(snapshot, jobs=tuple(replace(one, preemptible=True, run_started_s=None) for one in snapshot.jobs))
    if reason == "GuaranteeWaitsForRuns":
        assert firm_only == reason
        assert "owns" not in reasons(plan(replace(loose, tenants=(OWNER,)), config))


@pytest.mark.parametrize("mechanism", WALKING)
@pytest.mark.parametrize("placement", ["auto", "consolidate"])
@pytest.mark.parametrize("closed", ["cordoned", "not for the job"])
def test_what_runs_on_nodes_that_the_job_may_not_have_is_not_why_it_waits(
    mechanism: str, placement: Placement, closed: str
) -> None:
    """A node that is cordoned, drained or avoided gives it nothing, whoever leaves."""
    own = guest("own", 4, "n1", tenant="other")
    owns = job("owns", 4, tenant="owner", placement=placement, nodes=("n1",) if closed == "not for the job" else None)
    tenants = (OWNER, replace(OWNER, name="other"))
    snapshot = cluster(guest("lent", 4), own, owns, tenants=tenants, nodes=2)
    if closed == "cordoned":
        snapshot = replace(snapshot, nodes=(replace(snapshot.nodes[0], schedulable=False), snapshot.nodes[1]))
    config = PlanConfig(policy="fifo", mechanism=mechanism, mode="fill")
    assert not reasons(plan(snapshot, config))["owns"].startswith("Guarantee")
    open_ = replace(snapshot, nodes=cluster(nodes=2).nodes, jobs=(*snapshot.jobs[:2], replace(owns, nodes=None)))
    assert reasons(plan(open_, config)) == {"owns": "GuaranteeAtRoundEnd"}
