"""How the cluster is used: by node, by GPU type, by job and by tenant."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from synergy_api.cluster.pools import NodeCapacity
from synergy_api.timestamps import parse_time
from synergy_view.seen import SeenJob


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """A node with GPUs. CPU in milli-CPU, memory in bytes; `*_given` is what jobs hold there."""

    node: str
    gpu_type: str
    gpus: int
    gpus_given: int
    cpu_millis: int
    cpu_millis_given: int
    memory_bytes: int
    memory_bytes_given: int
    open_to_new: bool
    jobs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRow:
    """A GPU type. `gpus` is 0 where the user may not read nodes."""

    gpu_type: str
    nodes: int
    gpus: int
    gpus_given: int
    gpus_wanted: int
    """GPUs of the waiting jobs that may use the type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A job that holds GPUs."""

    job: str
    gpus: int
    gpu_type: str
    nodes: int
    steps_done: int
    steps: int
    steps_per_s: float
    gain: float | None
    """Speed that the plan expects over that at the GPU-proportional share; None where either is not known."""
    partners: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantRow:
    """A tenant, by what the jobs name; GPU-hours are those of jobs that still exist."""

    tenant: str
    running: int
    waiting: int
    gpus_given: int
    gpus_wanted: int
    gpu_hours: float


@dataclass(frozen=True, slots=True)
class Top:
    """The whole picture. `nodes` is empty where the user may not read nodes."""

    types: tuple[TypeRow, ...]
    nodes: tuple[NodeRow, ...]
    jobs: tuple[JobRow, ...]
    tenants: tuple[TenantRow, ...]


@dataclass
class _Given:
    gpus: int = 0
    cpu_millis: int = 0
    memory_bytes: int = 0
    jobs: list[str] = field(default_factory=list)


def top(jobs: Sequence[SeenJob], capacities: Sequence[NodeCapacity], now: float) -> Top:
    """Who has what. `capacities` may be empty, `now` is in seconds since the epoch.

    Jobs on one shared GPU each count that GPU, so a type can have more GPUs given than it has.
    """
    living = [job for job in jobs if not job.finished]
    return Top(
        types=tuple(_types(living, capacities)),
        nodes=tuple(_nodes(living, capacities)),
        jobs=tuple(sorted((_job(job) for job in living if job.gpus_held), key=lambda row: (-row.gpus, row.job))),
        tenants=tuple(_tenants(jobs, now)),
    )


def gpu_hours(job: SeenJob, now: float) -> float:
    """GPU-hours that the job has had, those of its open run included."""
    service = job.status.service
    if service is None:
        return 0.0
    running = max(0.0, now - parse_time(service.running_since)) if service.running_since is not None else 0.0
    return (service.attained_gpu_seconds + running * job.spec.gpus) / 3600


def _types(jobs: Sequence[SeenJob], capacities: Sequence[NodeCapacity]) -> Iterable[TypeRow]:
    given: dict[str, int] = defaultdict(int)
    for job in jobs:
        given[job.gpu_type] += job.gpus_held
    there = {one.gpu_type for one in capacities if one.gpu_type} | {name for name in given if name}
    waiting = [job for job in jobs if not job.gpus_held]
    for name in sorted(there):
        nodes = [one for one in capacities if one.gpu_type == name]
        yield TypeRow(
            gpu_type=name,
            nodes=len(nodes),
            gpus=sum(one.gpus for one in nodes),
            gpus_given=given[name],
            gpus_wanted=sum(job.spec.gpus for job in waiting if not job.spec.gpu_types or name in job.spec.gpu_types),
        )


def _nodes(jobs: Sequence[SeenJob], capacities: Sequence[NodeCapacity]) -> Iterable[NodeRow]:
    given: dict[str, _Given] = defaultdict(_Given)
    for job in jobs:
        allocation = job.status.allocation
        if allocation is None or not job.gpus_held:
            continue
        for share in allocation.workers:
            node = given[share.node]
            node.gpus += share.gpus
            node.cpu_millis += share.cpu_millis
            node.memory_bytes += share.memory_bytes
            node.jobs.append(job.full_name)
    for one in capacities:
        node = given[one.name]
        yield NodeRow(
            node=one.name,
            gpu_type=one.gpu_type,
            gpus=one.gpus,
            gpus_given=node.gpus,
            cpu_millis=one.amounts.cpu_millis,
            cpu_millis_given=node.cpu_millis,
            memory_bytes=one.amounts.memory_bytes,
            memory_bytes_given=node.memory_bytes,
            open_to_new=one.schedulable,
            jobs=tuple(sorted(node.jobs)),
        )


def _job(job: SeenJob) -> JobRow:
    allocation, progress = job.status.allocation, job.status.progress
    gain, shared = None, None
    if allocation is not None:
        shared = allocation.shared_gpu
        if allocation.steps_per_second > 0 and allocation.proportional_steps_per_second > 0:
            gain = allocation.steps_per_second / allocation.proportional_steps_per_second
    partners = () if shared is None else tuple(shared.asked if shared.seen is None else shared.seen)
    return JobRow(
        job=job.full_name,
        gpus=job.gpus_held,
        gpu_type=job.gpu_type,
        nodes=len(allocation.workers) if allocation is not None else 0,
        steps_done=progress.steps if progress is not None else 0,
        steps=job.spec.steps,
        steps_per_s=progress.steps_per_second if progress is not None else 0.0,
        gain=gain,
        partners=partners,
    )


def _tenants(jobs: Sequence[SeenJob], now: float) -> Iterable[TenantRow]:
    for name in sorted({job.tenant for job in jobs}):
        own = [job for job in jobs if job.tenant == name]
        waiting = [job for job in own if not job.finished and not job.gpus_held]
        yield TenantRow(
            tenant=name,
            running=sum(bool(job.gpus_held) for job in own if not job.finished),
            waiting=len(waiting),
            gpus_given=sum(job.gpus_held for job in own if not job.finished),
            gpus_wanted=sum(job.spec.gpus for job in waiting),
            gpu_hours=sum(gpu_hours(job, now) for job in own),
        )
