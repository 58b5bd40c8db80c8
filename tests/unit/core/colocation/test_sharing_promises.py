"""The planner's promises with GPU sharing on: over random clusters, a round planned on the last one."""

import random
from collections import Counter
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.planner import promises
from support.planner.quotas import keeps_quotas, with_quotas
from support.planner.snapshots import GIB, TYPES, in_mode, later, profiles
from support.planner.tenants import keeps_limits, with_tenants
from synergy_core.cache import Memory
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Allocation, Job, Node, Snapshot
from synergy_core.model.usage import Usage
from synergy_core.plan import plan
from synergy_core.policies.rounds.time_shares import WITH_PAIRS
from synergy_core.selection.scheduling_queue import JobIndex

some = settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])

_mechanisms = st.sampled_from(("proportional", "tune", "greedy"))
configs = st.one_of(
    st.builds(
        PlanConfig,
        policy=st.sampled_from(("fifo", "las", "srtf", "max-min-fairness")),
        mechanism=_mechanisms,
        colocation=st.sampled_from(("thesis", "thesis-fractions", "auto")),
    ),
    st.builds(
        PlanConfig,
        policy=st.sampled_from(("fifo", "gandiva", "makespan", "max-min-fairness", "max-throughput")),
        mechanism=_mechanisms,
        colocation=st.just("gavel"),
        aware=st.booleans(),
    ),
)


_memory = st.sampled_from((2, 6, 12))


@st.composite
def _usages(draw: st.DrawFn) -> Usage:
    compute = draw(st.sampled_from((0.05, 0.2, 0.5, 0.9)))
    return Usage(compute=compute, bandwidth=0.4 * compute, memory_bytes=draw(_memory) * GIB)


@st.composite
def _nodes(draw: st.DrawFn, name: str) -> Node:
    gpus = draw(st.sampled_from((1, 2, 4)))
    return Node(
        name=name,
        gpu_type=draw(st.sampled_from(TYPES)),
        gpus=gpus,
        cpu_millis=gpus * draw(st.integers(500, 6000)),
        memory_bytes=gpus * draw(st.integers(1, 64)) * GIB,
        replicas=draw(st.sampled_from((1, 2, 3))),
        gpu_memory_bytes=draw(st.sampled_from((0, 16, 16))) * GIB,
        client_thread_percent=draw(st.sampled_from((100, 100, 50, 30))),
    )


@st.composite
def _jobs(draw: st.DrawFn, name: str) -> Job:
    gpus = draw(st.sampled_from((1, 1, 1, 2)))
    types = draw(st.sampled_from(((), (), ("V100",))))
    return Job(
        name=name,
        gpus=gpus,
        arrival_s=float(draw(st.integers(0, 3))),
        gpu_types=types,
        profiles={
            kind: draw(profiles(gpus, plain=True)) for kind in sorted(draw(st.sets(st.sampled_from(types or TYPES))))
        },
        preemptible=draw(st.sampled_from((True, True, True, False))),
        nodes=draw(st.sampled_from((None, None, None, ("n0",)))),
        cpu_millis_min=draw(st.sampled_from((0, 0, 400))),
        cpu_millis_max=draw(st.sampled_from((None, None, 800))),
        sharing=draw(st.sampled_from((True, True, True, False))),
        sharing_across_tenants=draw(st.booleans()),
        tenant=draw(st.sampled_from(("a", "a", "b"))),
        min_throughput_fraction=draw(st.sampled_from((None, 0.0, 0.8))),
        usage={gpu_type: draw(_usages()) for gpu_type in TYPES},
    )


@st.composite
def sharing(draw: st.DrawFn) -> Snapshot:
    """A cluster whose GPUs may be shared, with jobs most of which allow it; all of them new."""
    nodes = tuple(draw(_nodes(f"n{index}")) for index in range(draw(st.integers(1, 3))))
    jobs = tuple(draw(_jobs(f"j{index}")) for index in range(draw(st.integers(1, 9))))
    return Snapshot(nodes=nodes, jobs=jobs)


def _teams(allocations: tuple[Allocation, ...]) -> list[tuple[Allocation, ...]]:
    """Who has one GPU; everybody says so of everybody else."""
    by_name = {one.job: one for one in allocations}
    found = {}
    for one in allocations:
        names = tuple(sorted((one.job, *one.partners)))
        for name in one.partners:
            other = by_name[name]
            assert tuple(sorted((other.job, *other.partners))) == names
            assert [share.node for share in other.workers] == [share.node for share in one.workers]
        found[names] = tuple(by_name[name] for name in names)
    return list(found.values())


def _alone(snapshot: Snapshot, job: Job, gpu_type: str) -> float:
    """What threads leave the job of its speed on the node of the type that leaves it most."""
    nodes = [node for node in snapshot.nodes if node.gpu_type == gpu_type and (not job.nodes or node.name in job.nodes)]
    percent = max((node.client_thread_percent for node in nodes), default=100)
    return min(1.0, percent / 100 / job.usage[gpu_type].compute)


def _fair(snapshot: Snapshot, config: PlanConfig, job: Job, gpu_type: str) -> float:
    """Of the types that the job may use, the GPUs there are for each that is wanted by those who may use one of them;
    where an allocation matrix says who shares, on a type on which the job is faster than on the average GPU only what
    it would have with such a part of every type."""
    present = {node.gpu_type for node in snapshot.nodes}
    own = present & set(job.gpu_types or present)
    there = sum(node.gpus for node in snapshot.nodes if node.gpu_type in own)
    rivals = [other for other in snapshot.jobs if own & set(other.gpu_types or present)]
    fair = min(1.0, there / sum(other.gpus for other in rivals)) * _alone(snapshot, job, gpu_type)
    memory = Memory()
    memory.begin(snapshot.nodes, config.demand_tolerance)
    by_matrix = config.colocation == "gavel" or config.policy in WITH_PAIRS - {"fifo"}
    if not by_matrix or len(memory.pools) < 2:
        return fair
    gpus = {pool.gpu_type: pool.open_gpus[0] for pool in memory.pools}
    for other in snapshot.jobs:
        if other.running is not None and not other.preemptible:
            gpus[other.running.gpu_type] -= other.gpus
    speeds = {
        name: one * _alone(snapshot, job, name) for name, one in JobIndex(snapshot.jobs, memory).speeds(job).items()
    }
    done = sum(speed * gpus[name] for name, speed in speeds.items() if gpus[name] >= job.gpus)
    return fair * min(1.0, done / sum(gpus.values()) / speeds[gpu_type])


def check(snapshot: Snapshot, config: PlanConfig) -> None:
    result = plan(snapshot, config)
    promises.every_job_once(snapshot, result)
    jobs = {job.name: job for job in snapshot.jobs}
    nodes = {node.name: node for node in snapshot.nodes}
    gpus: Counter[str] = Counter()
    for team in _teams(result.allocations):
        for share in team[0].workers:
            gpus[share.node] += share.gpus
        if len(team) == 1:
            continue
        members = [jobs[one.job] for one in team]
        (node,) = {nodes[share.node] for one in team for share in one.workers}
        assert len(team) <= node.replicas
        assert all(job.gpus == 1 and job.sharing and job.preemptible for job in members)
        assert sum(job.usage[node.gpu_type].memory_bytes for job in members) <= node.gpu_memory_bytes
        assert len({job.tenant for job in members}) == 1 or all(job.sharing_across_tenants for job in members)
    used = promises.per_node(result.allocations)
    for node in snapshot.nodes:
        assert gpus[node.name] <= promises.left(node, "gpus")
        for dimension in promises.dimensions(snapshot):
            assert used.get(node.name, Counter())[dimension] <= promises.left(node, dimension), dimension
    for one in result.allocations:
        job = jobs[one.job]
        if one.gpu_type in job.profiles and job.running is None:
            best = max(map(max, job.profiles[one.gpu_type].steps_per_s))
            part = min(nodes[share.node].client_thread_percent for share in one.workers) / 100
            assert one.steps_per_s * job.usage[one.gpu_type].compute <= part * best * (1 + 1e-9), "beyond its threads"
        if one.partners:
            assert one.workers[0].cpu_millis >= max(1, job.cpu_millis_min)
            assert one.workers[0].cpu_millis <= (job.cpu_millis_max or 1 << 50)
            assert one.workers[0].memory_bytes >= 1
        if config.colocation == "gavel" and config.mode == "round":
            assert len(one.partners) <= 1
        if one.partners and config.colocation == "auto" and config.mode == "round" and one.proportional_steps_per_s:
            least = job.min_throughput_fraction
            if least is None:
                least = _fair(snapshot, config, job, one.gpu_type)
            assert one.steps_per_s >= least * one.proportional_steps_per_s * (1 - 1e-6)


@some
@given(sharing(), configs)
def test_a_first_round_keeps_every_promise(snapshot: Snapshot, config: PlanConfig) -> None:
    check(snapshot, config)


@some
@given(sharing(), configs, st.integers(0, 3), st.sampled_from(("round", "fill")))
def test_so_does_one_after_some_jobs_have_ended(snapshot: Snapshot, config: PlanConfig, gone: int, mode: str) -> None:
    before = later(snapshot, plan(snapshot, config))
    after = replace(before, jobs=before.jobs[gone:])
    if after.jobs:
        check(after, in_mode(config, mode))  # type: ignore[arg-type]


@some
@given(sharing(), configs)
def test_between_rounds_nobody_leaves_grows_or_gets_other_partners(snapshot: Snapshot, config: PlanConfig) -> None:
    before = later(snapshot, plan(snapshot, config))
    result = plan(before, in_mode(config, "fill"))
    now = {one.job: one for one in result.allocations}
    assert result.preempted == ()
    for job in before.jobs:
        if job.running is not None:
            assert now[job.name].partners == job.running.partners
            for was, is_ in zip(job.running.workers, now[job.name].workers, strict=True):
                assert (was.node, was.gpus) == (is_.node, is_.gpus)
                assert (is_.cpu_millis <= was.cpu_millis, is_.memory_bytes <= was.memory_bytes) == (True, True)


@some
@given(sharing(), configs, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(snapshot: Snapshot, config: PlanConfig, rng: random.Random) -> None:
    snapshot = later(snapshot, plan(snapshot, config))
    nodes, jobs = list(snapshot.nodes), list(snapshot.jobs)
    rng.shuffle(nodes)
    rng.shuffle(jobs)
    assert plan(replace(snapshot, nodes=tuple(nodes), jobs=tuple(jobs)), config) == plan(snapshot, config)


@some
@given(sharing(), configs)
def test_without_sharing_whoever_shared_has_a_gpu_alone_or_waits(snapshot: Snapshot, config: PlanConfig) -> None:
    before = later(snapshot, plan(snapshot, config))
    result = plan(before, replace(config, colocation="none"))
    assert all(one.partners == () for one in result.allocations)
    promises.every_job_once(before, result)
    promises.nothing_over_allocated(before, result, fill=False)


def _with_devices(snapshot: Snapshot) -> Snapshot:
    """As the device plugin counts: as many devices as a GPU has clients."""
    return replace(snapshot, nodes=tuple(replace(node, devices_per_gpu=node.replicas) for node in snapshot.nodes))


@some
@given(with_quotas(sharing().map(_with_devices)), configs)
def test_jobs_that_share_a_gpu_keep_to_the_quotas_of_each(snapshot: Snapshot, config: PlanConfig) -> None:
    first = plan(snapshot, config)
    keeps_quotas(snapshot, first)
    again = later(snapshot, first)
    keeps_quotas(again, plan(again, config))
    keeps_quotas(again, plan(again, in_mode(config, "fill")))


@some
@given(with_tenants(sharing()), configs)
def test_a_gpu_that_jobs_share_counts_once_for_each_tenant_that_has_one_of_them(
    snapshot: Snapshot, config: PlanConfig
) -> None:
    first = plan(snapshot, config)
    keeps_limits(snapshot, config, first)
    after = later(snapshot, first)
    for mode in ("round", "fill"):
        keeps_limits(after, in_mode(config, mode), plan(after, in_mode(config, mode)))
