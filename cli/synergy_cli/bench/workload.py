"""Random clusters and queues of a given size, the same for the same seed."""

import random
from dataclasses import replace

from synergy_core.model.answer import Plan
from synergy_core.model.snapshot import Allocation, Job, Node, Profile, Snapshot, Tenant

_GIB = 2**30
_GPUS, _CPU, _MEMORY = 8, 24000, 500 * _GIB
_GPU_COUNTS = {1: 60, 2: 12, 4: 14, 8: 10, 16: 4}
"""How many of a hundred jobs have so many GPUs."""

TYPES = ("V100", "A100", "H100", "H200", "L40S", "A40", "T4", "P100")
"""GPU types, of which a cluster has the first ones."""
_ANY_TYPE = 10
"""Of a hundred jobs so many may run on all GPU types, where there are several; the others on one."""


def cluster(*, nodes: int, jobs: int, seed: int, types: int = 1) -> Snapshot:
    """Nodes of 8 GPUs, 24 CPUs and 500 GiB, and waiting jobs whose demands are below, at and above their share. Nodes
    and jobs are dealt out to the GPU types, 8 at most."""
    rng = random.Random(seed)  # noqa: S311 - a workload, not a secret
    return Snapshot(
        nodes=tuple(
            Node(
                name=f"n{index:05}",
                gpu_type=TYPES[index % types],
                gpus=_GPUS,
                cpu_millis=_CPU,
                memory_bytes=_MEMORY,
                price_per_hour=1.0,
            )
            for index in range(nodes)
        ),
        jobs=tuple(_of_type(_job(rng, index), index, types) for index in range(jobs)),
    )


def a_round_later(snapshot: Snapshot, plan: Plan, *, seed: int) -> Snapshot:
    """The cluster once the plan was carried out, and with new amounts of attained service: some jobs change places."""
    rng = random.Random(seed)  # noqa: S311 - a workload, not a secret
    given = {allocation.job: allocation for allocation in plan.allocations}
    jobs = (
        replace(job, running=given.get(job.name), attained_gpu_s=float(rng.randint(0, 100_000)))
        for job in snapshot.jobs
    )
    return replace(snapshot, jobs=tuple(jobs))


def the_round_after(snapshot: Snapshot, plan: Plan, *, seed: int, leaving: float = 0.01) -> Snapshot:
    """The same cluster at the next round. All times went on, as the extender tells them: that makes every job another
    object. Of the running jobs so many have ended, and as many jobs have come."""
    rng = random.Random(seed)  # noqa: S311 - a workload, not a secret
    given = {allocation.job: allocation for allocation in plan.allocations}
    jobs = [
        _a_round_older(job, given.get(job.name), snapshot.round_s)
        for job in snapshot.jobs
        if job.name not in given or rng.random() >= leaving
    ]
    now = snapshot.now + snapshot.round_s
    came = [
        replace(_job(rng, index), name=f"r{now:.0f}-{index}", arrival_s=now, attained_gpu_s=0.0)
        for index in range(len(snapshot.jobs) - len(jobs))
    ]
    types = sorted({node.gpu_type for node in snapshot.nodes}, key=TYPES.index)
    came = [_of_type(job, index, len(types)) for index, job in enumerate(came)]
    return replace(snapshot, jobs=(*jobs, *came), now=now)


def _a_round_older(job: Job, running: Allocation | None, round_s: float) -> Job:
    if running is None:
        return replace(job, running=None, waiting_s=job.waiting_s + round_s)
    return replace(job, running=running, attained_gpu_s=job.attained_gpu_s + round_s * job.gpus)


def among_tenants(snapshot: Snapshot, tenants: int) -> Snapshot:
    """The same with its jobs dealt out to tenants, in departments of four, to which the GPUs are guaranteed."""
    gpus = sum(node.gpus for node in snapshot.nodes) // tenants
    teams = [
        Tenant(f"team-{index:03}", parent=f"department-{index // 4:02}", guarantee={"V100": gpus})
        for index in range(tenants)
    ]
    departments = [
        Tenant(name, guarantee={"V100": sum(gpus for team in teams if team.parent == name)})
        for name in sorted({team.parent or "" for team in teams})
    ]
    jobs = tuple(replace(job, tenant=teams[index % tenants].name) for index, job in enumerate(snapshot.jobs))
    return replace(snapshot, jobs=jobs, tenants=(*departments, *teams))


def _job(rng: random.Random, index: int) -> Job:
    gpus = rng.choices(list(_GPU_COUNTS), list(_GPU_COUNTS.values()))[0]
    one_node = gpus <= _GPUS and rng.random() < 0.1
    return Job(
        name=f"j{index:05}",
        gpus=gpus,
        arrival_s=float(index),
        attained_gpu_s=float(rng.randint(0, 100_000)),
        steps_total=rng.randint(1_000, 100_000),
        profiles={"V100": _profile(rng, gpus)},
        placement="consolidate" if one_node else "auto",
    )


def _of_type(job: Job, index: int, types: int) -> Job:
    if types == 1:
        return job
    profile = job.profiles["V100"]
    named = TYPES[:types] if index % 100 < _ANY_TYPE else (TYPES[index % types],)
    return replace(job, gpu_types=named, profiles=dict.fromkeys(named, profile))


def _profile(rng: random.Random, gpus: int) -> Profile:
    """The slower of CPU and storage sets the pace."""
    cpu_share, memory_share = gpus * _CPU // _GPUS, gpus * _MEMORY // _GPUS
    knee = cpu_share * rng.choice((0.2, 0.5, 1, 1, 2, 3, 4))
    saturated = memory_share * rng.choice((0.2, 0.5, 1, 2, 4))
    cpu = tuple(cpu_share * thirds // 3 for thirds in (1, 2, 3, 4, 5, 6, 9, 12, 24))
    memory = tuple(memory_share * thirds // 3 for thirds in (1, 3, 6, 9, 12))
    speed = tuple(tuple(10 * min(1.0, c / knee, 0.3 + 0.7 * m / saturated) for m in memory) for c in cpu)
    return Profile(cpu_millis=cpu, memory_bytes=memory, steps_per_s=speed)
