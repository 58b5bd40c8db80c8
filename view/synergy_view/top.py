"""How the cluster is used: by node, by GPU type, by job and by tenant."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from synergy_api.cluster.failing_nodes import JobRuns, find_failing_nodes, told
from synergy_api.cluster.pools import NodeCapacity
from synergy_api.length import total_steps
from synergy_api.resources.scheduling_policy import FailingNodes
from synergy_api.timestamps import parse_time
from synergy_view.progress import metrics_text
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
class FailingNodeRow:
    """A node that keeps failing jobs. `retry_s` is when one job may try it, in seconds since the epoch."""

    node: str
    gpu_type: str
    gpus: int
    state: str
    jobs: tuple[str, ...]
    retry_s: float
    message: str


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
    steps: int | None
    """None while nobody knows how many it has, and where it ends by time."""
    steps_per_s: float
    gain: float | None
    """Speed that the plan expects over that at the GPU-proportional share; None where either is not known."""
    partners: tuple[str, ...]
    metrics: str = ""
    """What its script reported, such as its loss."""


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


def top(jobs: Sequence[SeenJob], capacities: Sequence[NodeCapacity], now: float) -> Top:
    """Who has what. `capacities` may be empty, `now` is in seconds since the epoch.

    Jobs on one shared GPU each count that GPU, so a type can have more GPUs given than it has.
    """
    jobs = [job for job in jobs if not job.is_array and not job.is_elsewhere]
    living = [job for job in jobs if not job.finished]
    by_node: dict[str, list[SeenJob]] = defaultdict(list)
    by_tenant: dict[str, list[SeenJob]] = defaultdict(list)
    given, wanted = Counter[str](), Counter[tuple[str, ...]]()
    for job in living:
        for node in nodes_held(job):
            by_node[node].append(job)
        given.update(gpus_given(job))
        wanted.update(gpus_wanted(job))
    for job in jobs:
        by_tenant[job.tenant].append(job)
    return Top(
        types=tuple(type_rows(type_sizes(capacities), given, wanted)),
        nodes=tuple(node_row(one, by_node[one.name]) for one in capacities),
        jobs=tuple(sorted((job_row(job) for job in living if job.gpus_held), key=lambda row: (-row.gpus, row.job))),
        tenants=tuple(tenant_row(name, by_tenant[name], now) for name in sorted(by_tenant)),
    )


def gpu_hours(job: SeenJob, now: float) -> float:
    """GPU-hours that the job has had, those of its open run included."""
    service = job.status.service
    if service is None:
        return 0.0
    running = max(0.0, now - parse_time(service.running_since)) if service.running_since is not None else 0.0
    return (service.attained_gpu_seconds + running * job.spec.gpus) / 3600


def nodes_held(job: SeenJob) -> set[str]:
    """The nodes that an unfinished job holds something of."""
    allocation = job.status.allocation
    return {share.node for share in allocation.workers} if allocation is not None and _holds(job) else set()


def gpus_given(job: SeenJob) -> dict[str, int]:
    """GPUs that an unfinished job holds, by their type."""
    return {job.gpu_type: job.gpus_held} if _holds(job) and job.gpu_type else {}


def gpus_wanted(job: SeenJob) -> dict[tuple[str, ...], int]:
    """GPUs that a waiting job wants, by the types that it may use; no type means any."""
    return {} if job.finished or job.gpus_held or job.is_array else {tuple(job.spec.gpu_types): job.spec.gpus}


def _holds(job: SeenJob) -> bool:
    return not job.finished and job.gpus_held > 0


def type_sizes(capacities: Iterable[NodeCapacity]) -> dict[str, tuple[int, int]]:
    """How many nodes and GPUs each type has."""
    sizes: dict[str, tuple[int, int]] = {}
    for one in capacities:
        if one.gpu_type:
            nodes, gpus = sizes.get(one.gpu_type, (0, 0))
            sizes[one.gpu_type] = nodes + 1, gpus + one.gpus
    return sizes


def type_rows(
    sizes: Mapping[str, tuple[int, int]], given: Mapping[str, int], wanted: Mapping[tuple[str, ...], int]
) -> list[TypeRow]:
    """The GPU types by name, from what all jobs together hold and want."""
    there = sizes.keys() | {name for name, gpus in given.items() if gpus}
    return [
        TypeRow(
            gpu_type=name,
            nodes=sizes.get(name, (0, 0))[0],
            gpus=sizes.get(name, (0, 0))[1],
            gpus_given=given.get(name, 0),
            gpus_wanted=sum(gpus for types, gpus in wanted.items() if not types or name in types),
        )
        for name in sorted(there)
    ]


def node_row(capacity: NodeCapacity, jobs: Iterable[SeenJob]) -> NodeRow:
    """A node, and what these jobs hold there."""
    gpus = cpu_millis = memory_bytes = 0
    names: list[str] = []
    for job in jobs:
        for share in job.status.allocation.workers if job.status.allocation is not None else ():
            if share.node == capacity.name:
                gpus += share.gpus
                cpu_millis += share.cpu_millis
                memory_bytes += share.memory_bytes
                names.append(job.full_name)
    return NodeRow(
        node=capacity.name,
        gpu_type=capacity.gpu_type,
        gpus=capacity.gpus,
        gpus_given=gpus,
        cpu_millis=capacity.amounts.cpu_millis,
        cpu_millis_given=cpu_millis,
        memory_bytes=capacity.amounts.memory_bytes,
        memory_bytes_given=memory_bytes,
        open_to_new=capacity.schedulable,
        jobs=tuple(sorted(names)),
    )


def failing_node_rows(
    jobs: Iterable[SeenJob],
    nodes: Iterable[Mapping[str, Any]],
    capacities: Sequence[NodeCapacity],
    options: FailingNodes,
    now: float,
) -> list[FailingNodeRow]:
    """The nodes that keep failing jobs, as far as these jobs tell."""
    runs = (JobRuns(job.full_name, job.uid, job.status) for job in jobs)
    found = find_failing_nodes(runs, nodes, capacities, options, now)
    return [
        FailingNodeRow(
            node=one.name,
            gpu_type=one.gpu_type,
            gpus=one.gpus,
            state=found[one.name].state.value,
            jobs=found[one.name].jobs,
            retry_s=found[one.name].retry_at,
            message=told(found[one.name]).message,
        )
        for one in capacities
        if one.name in found
    ]


def job_row(job: SeenJob) -> JobRow:
    """A job that holds GPUs."""
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
        steps=total_steps(job.spec, job.status),
        metrics=metrics_text(progress),
        steps_per_s=progress.steps_per_second if progress is not None else 0.0,
        gain=gain,
        partners=partners,
    )


def tenant_row(tenant: str, jobs: Iterable[SeenJob], now: float) -> TenantRow:
    """A tenant, from its jobs."""
    running = waiting = gpus = wanted = 0
    hours = 0.0
    for job in jobs:
        hours += gpu_hours(job, now)
        if job.finished:
            continue
        held = job.gpus_held
        gpus += held
        running += held > 0
        waiting += held == 0
        wanted += 0 if held else job.spec.gpus
    return TenantRow(
        tenant=tenant, running=running, waiting=waiting, gpus_given=gpus, gpus_wanted=wanted, gpu_hours=hours
    )
