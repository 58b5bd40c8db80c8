"""No plan exceeds a limit of a tenant, and what tenants allow is used."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.planner import planning, promises
from support.planner.snapshots import configs, filling_configs, snapshots
from support.planner.tenants import Tenants, idle, keeps_limits, keeps_reserves, trees, with_tenants
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Snapshot, Tenant
from synergy_core.plan import plan

often = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


@often
@given(with_tenants(snapshots()), configs)
def test_no_plan_exceeds_a_limit(snapshot: Snapshot, config: PlanConfig) -> None:
    result = plan(snapshot, config)
    promises.all_promises(snapshot, result, fill=config.mode == "fill")
    keeps_limits(snapshot, config, result)


@often
@given(with_tenants(snapshots(disturbed=True)), configs)
def test_nor_after_nodes_were_lost_and_pods_of_others_came(snapshot: Snapshot, config: PlanConfig) -> None:
    result = plan(snapshot, config)
    promises.all_promises(snapshot, result, fill=config.mode == "fill")
    keeps_limits(snapshot, config, result)


@settings(often, max_examples=15)
@given(with_tenants(snapshots(plain=True)), st.sampled_from(("round", "fill")))
def test_nor_one_of_opt(snapshot: Snapshot, mode: str) -> None:
    config = PlanConfig(policy="las", mechanism="opt", mode=mode)  # type: ignore[arg-type]
    keeps_limits(snapshot, config, plan(snapshot, config))


@often
@given(with_tenants(snapshots(foreign=False)), configs)
def test_what_tenants_do_not_lend_stays_free_for_them(snapshot: Snapshot, config: PlanConfig) -> None:
    keeps_reserves(snapshot, config, plan(snapshot, config))


@often
@given(snapshots(), configs, st.lists(st.sampled_from(("a", "b", "c")), unique=True))
def test_tenants_that_say_nothing_change_nothing(snapshot: Snapshot, config: PlanConfig, names: list[str]) -> None:
    named = replace(snapshot, jobs=tuple(replace(job, tenant="a") for job in snapshot.jobs))
    tenants = tuple(Tenant(name, 1.0) for name in names)
    assert plan(replace(named, tenants=tenants), config) == plan(named, config)


@often
@given(with_tenants(snapshots(foreign=False)), filling_configs)
def test_nothing_idles_while_somebody_may_have_it(snapshot: Snapshot, config: PlanConfig) -> None:
    """A job of one GPU that may run anywhere waits only if its tenants have no room, or no GPU is left for it."""
    jobs = tuple(
        replace(
            job, placement="auto", nodes=None, purpose="train", cpu_millis_min=0, memory_bytes_min=0, further_min={}
        )
        for job in snapshot.jobs
    )
    snapshot = replace(snapshot, jobs=jobs)
    result = plan(snapshot, config)
    tenants = Tenants(snapshot)
    types = {node.gpu_type for node in snapshot.nodes}
    others = ("NoFreeCPUOrMemory", "KeptForAPromotedJob")  # beside the free GPU nothing is left, or it is kept
    for name in {one.job for one in result.waiting if one.reason not in others}:
        job = tenants.jobs[name]
        for gpu_type in types.intersection(job.gpu_types or types) if job.gpus == 1 else ():
            above = tenants.above(job.tenant)
            held = {one: tenants.held(result.allocations, one, gpu_type) for one in above}
            has_room = all(held[one] < tenants.cap(one, gpu_type) for one in above)
            left = idle(snapshot, result, gpu_type)
            assert left == 0 or not has_room or left <= tenants.reserved(result.allocations, gpu_type), (name, gpu_type)


def jobs_of(tenant: str, count: int, *, running: int = 0, gpus: int = 1, first: float = 0.0) -> list[Job]:
    """Jobs of a tenant on one node, of which some run; later ones came later."""
    found = []
    for index in range(count):
        name = f"{tenant}{index}"
        place = planning.holding(name, ("n0", gpus, 3 * gpus, 60 * gpus)) if index < running else None
        found.append(Job(name=name, gpus=gpus, tenant=tenant, arrival_s=first + index, running=place))
    return found


def on_one_node(*jobs: Job, tenants: tuple[Tenant, ...], gpus: int = 8) -> Snapshot:
    node = planning.node("n0", gpus, cpus=3 * gpus, gib=60 * gpus)
    return Snapshot(nodes=(node,), jobs=jobs, tenants=tenants)


EVERY = ("tune", "proportional", "greedy", "opt", "drf", "drf-tune", "tetris", "tetris-tune")


@pytest.mark.parametrize("mechanism", EVERY)
@pytest.mark.parametrize("policy", ["fifo", "las", "max-min-fairness", "yarn-cs"])
def test_a_lowered_limit_takes_runs_at_the_rounds_end_and_not_before(mechanism: str, policy: str) -> None:
    tenants = (Tenant("org", limit={"V100": 3}), Tenant("team", parent="org", limit={"V100": 4}))
    snapshot = on_one_node(*jobs_of("team", 5, running=5), tenants=tenants)
    config = PlanConfig(policy=policy, mechanism=mechanism)
    result = plan(snapshot, config)
    assert len(result.allocations) == 3
    assert len(result.preempted) == 2
    (reason,) = {one.reason for one in result.waiting}
    assert reason == "TenantLimit"
    assert len(plan(snapshot, replace(config, mode="fill")).allocations) == 5


@pytest.mark.parametrize("mechanism", EVERY)
def test_each_limit_says_its_numbers(mechanism: str) -> None:
    tenants = (
        Tenant("capped", limit={"V100": 2}),
        Tenant("modest", guarantee={"V100": 1}, borrowing={"V100": 1}),
        Tenant("owner", guarantee={"V100": 3}, lending={"V100": 1}),
    )
    jobs = [*jobs_of("capped", 3), *jobs_of("modest", 3), *jobs_of("guest", 9)]
    result = plan(on_one_node(*jobs, tenants=tenants), PlanConfig(policy="las", mechanism=mechanism))
    told = {one.job: (one.reason, one.message) for one in result.waiting}
    assert told["capped2"][0] == "TenantLimit"
    assert "tenant capped may hold 2 of the V100 GPUs and has 2, and the job needs 1" in told["capped2"][1]
    assert told["modest2"][0] == "BorrowingLimit"
    assert "tenant modest is guaranteed 1 of the V100 GPUs, may borrow 1 beyond and has 2" in told["modest2"][1]
    assert told["guest8"][0] == "GuaranteesFirst"
    assert "tenant guest is guaranteed 0 of the V100 GPUs and has 2" in told["guest8"][1]
    assert idle(on_one_node(tenants=()), result, "V100") == 2


@often
@given(trees())
def test_an_empty_cluster_has_an_empty_plan(tenants: tuple[Tenant, ...]) -> None:
    assert plan(Snapshot(nodes=(), jobs=(), tenants=tenants), PlanConfig()).allocations == ()
