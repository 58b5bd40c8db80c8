"""Guarantees, reclaims and rest on random trees and clusters of several nodes and GPU types, with gangs.

`test_guarantees.py` has one node and compares with all divisions; here is what holds anywhere.
"""

import random
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.planner.snapshots import later, snapshots
from support.planner.tenants import TYPES, Tenants, with_tenants
from synergy_core.cache import Memory
from synergy_core.mechanisms import MECHANISMS
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Snapshot, Tenant
from synergy_core.plan import plan
from synergy_core.policies import POLICIES

often = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
NOW = 10_000.0
PREEMPTING = ("las", "srtf", "sf", "ftf", "2d-las")
BY_GPUS = ("tune", "proportional")
"""Mechanisms that let run whoever's GPUs fit."""


def within(snapshot: Snapshot) -> tuple[Tenant, ...]:
    """The tree with guarantees that the cluster has: of each type the roots keep so many, in order of name."""
    left = {one: sum(node.gpus for node in snapshot.nodes if node.gpu_type == one) for one in TYPES}
    found: dict[str, dict[str, int]] = {}
    for tenant in snapshot.tenants:
        room = left if tenant.parent is None else found[tenant.parent]
        taken = {
            one: sum(
                found[o.name].get(one, 0) for o in snapshot.tenants if o.parent == tenant.parent and o.name in found
            )
            for one in TYPES
        }
        found[tenant.name] = {
            one: max(0, min(amount, room.get(one, 0) - taken[one])) for one, amount in tenant.guarantee.items()
        }
    return tuple(replace(tenant, guarantee=found[tenant.name]) for tenant in snapshot.tenants)


@st.composite
def clusters(draw: st.DrawFn, *, limits: bool = True, budgets: bool = False) -> Snapshot:
    """Jobs that nothing but tenants holds up: any nodes will do for them, and none is protected."""
    snapshot = draw(with_tenants(snapshots(plain=True, foreign=False), limits=limits))
    jobs = tuple(
        replace(
            job, placement="auto", nodes=None, preemptible=True, run_started_s=None, preemption_cost_s=0.0,
            arrival_s=NOW - 100.0 - job.arrival_s, started_s=None if job.started_s is None else NOW - 50.0,
        )
        for job in snapshot.jobs
    )  # fmt: skip
    tenants = within(snapshot)
    if budgets:
        tenants = tuple(replace(one, preemptions_per_hour=draw(st.sampled_from((None, 0, 1, 2)))) for one in tenants)
    return replace(snapshot, jobs=jobs, tenants=tenants, now=NOW)


def unmet(snapshot: Snapshot, result: Plan) -> list[tuple[str, str]]:
    """Waiting jobs that fit into the rest of their own tenant's guarantee on a type, below all caps; and the type."""
    tenants = Tenants(snapshot)
    found = []
    for job in snapshot.jobs:
        if job.name in {one.job for one in result.allocations} or job.tenant not in tenants.listed:
            continue
        if any(tenant.parent == job.tenant for tenant in snapshot.tenants):
            continue  # the guarantees of its children come first
        above = tenants.above(job.tenant)
        for gpu_type in set(job.gpu_types or TYPES):
            held = {name: tenants.held(result.allocations, name, gpu_type) + job.gpus for name in above}
            capped = any(held[name] > tenants.cap(name, gpu_type) for name in above)
            if not capped and held[job.tenant] <= tenants.guarantee(job.tenant, gpu_type):
                found.append((job.name, gpu_type))
    return found


@often
@given(clusters(), st.sampled_from(PREEMPTING), st.sampled_from(BY_GPUS))
def test_a_guarantee_is_met_in_the_next_round_on_many_nodes_and_for_gangs(
    snapshot: Snapshot, policy: str, mechanism: str
) -> None:
    assert unmet(snapshot, plan(snapshot, PlanConfig(policy=policy, mechanism=mechanism))) == []


@often
@given(clusters(budgets=True), st.sampled_from(PREEMPTING), st.sampled_from(BY_GPUS))
def test_after_an_hour_no_budget_of_a_tenant_holds_a_guarantee_up(
    snapshot: Snapshot, policy: str, mechanism: str
) -> None:
    waited = replace(snapshot, jobs=tuple(replace(one, waiting_s=3600.0) for one in snapshot.jobs))
    assert unmet(waited, plan(waited, PlanConfig(policy=policy, mechanism=mechanism))) == []


@often
@given(clusters(limits=False), st.sampled_from(PREEMPTING), st.sampled_from(BY_GPUS))
def test_a_guarantee_takes_from_the_tree_that_borrows_most(snapshot: Snapshot, policy: str, mechanism: str) -> None:
    """No root that kept what it borrowed borrows more, by a whole job, than the root that gave way did."""
    snapshot = replace(snapshot, tenants=tuple(replace(one, weight=1.0) for one in snapshot.tenants))
    result = plan(snapshot, PlanConfig(policy=policy, mechanism=mechanism))
    tenants = Tenants(snapshot)
    roots = {tenants.above(job.tenant)[-1] for job in snapshot.jobs}
    largest = max((job.gpus for job in snapshot.jobs), default=0)
    before = [one.running for one in snapshot.jobs if one.running is not None]
    for one in result.displaced:
        running = tenants.jobs[one.job].running
        if one.cause != "guarantee" or running is None:
            continue
        gpu_type = running.gpu_type
        mine = tenants.above(tenants.jobs[one.job].tenant)[-1]
        had = tenants.held(before, mine, gpu_type) - tenants.guarantee(mine, gpu_type)
        for other in roots - {mine}:
            kept = [each for each in result.allocations if each.job not in result.preempted and each in before]
            borrows = tenants.held(kept, other, gpu_type) - tenants.guarantee(other, gpu_type)
            assert borrows <= max(0, had) + largest, (one, other)


@often
@given(clusters(), st.sampled_from(PREEMPTING), st.sampled_from(sorted(set(MECHANISMS) - {"opt"})))
def test_a_job_displaced_for_a_guarantee_does_not_come_back_to_displace(
    snapshot: Snapshot, policy: str, mechanism: str
) -> None:
    """Of the same demand, over rounds: so there is no ping-pong, and with budgets even less."""
    config = PlanConfig(policy=policy, mechanism=mechanism)
    gave_way: set[str] = set()
    for _ in range(5):
        result = plan(snapshot, config)
        for one in result.displaced:
            assert one.cause != "guarantee" or not gave_way & set(one.by), (one, gave_way)
        gave_way |= {one.job for one in result.displaced if one.cause == "guarantee"}
        snapshot = later(snapshot, result)
    assert plan(snapshot, config).preempted == ()


@often
@given(
    clusters(budgets=True),
    st.sampled_from(sorted(POLICIES)),
    st.sampled_from(sorted(set(MECHANISMS) - {"opt"})),
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_input_and_earlier_plans_do_not_matter(
    snapshot: Snapshot, policy: str, mechanism: str, rng: random.Random
) -> None:
    config = PlanConfig(policy=policy, mechanism=mechanism)
    nodes, jobs, tenants = list(snapshot.nodes), list(snapshot.jobs), list(snapshot.tenants)
    for one in (nodes, jobs, tenants):
        rng.shuffle(one)  # type: ignore[arg-type]
    shuffled = replace(snapshot, nodes=tuple(nodes), jobs=tuple(jobs), tenants=tuple(tenants))
    assert plan(shuffled, config) == plan(snapshot, config)
    if policy in PREEMPTING:
        memory = Memory()
        plan(replace(snapshot, jobs=snapshot.jobs[:2]), config, memory)
        assert plan(snapshot, config, memory) == plan(snapshot, config)
