"""What is simulated: the jobs of a trace with their matrices on a cluster."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from synergy_core.colocation.predictors.pair_table import PairTable
from synergy_core.model.config import PlanConfig
from synergy_core.model.pool import Pool as NodePool
from synergy_core.model.snapshot import Job, Node, Profile
from synergy_core.model.usage import Usage
from synergy_core.throughput.job_class import JobClass
from synergy_simulator.inputs.clusters import Cluster
from synergy_simulator.inputs.errors import InputError, InputLocation
from synergy_simulator.inputs.profiles import ProfileTable, flat_profile
from synergy_simulator.inputs.traces import TraceJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A job to be simulated."""

    name: str
    arrival_s: float
    gpus: int
    model: str
    steps: float
    """Work; not rounded: a duration of a trace is kept exactly."""
    profiles: Mapping[str, Profile]
    """One object for all tasks of a model with so many GPUs, which the planner makes use of."""
    share_steps_per_s: float
    """Speed at the GPU-proportional share of the GPU type where it is fastest."""
    alone_s: float
    """Seconds at the proportional share of the cluster's GPUs, all types in their proportion."""
    tenant: str = ""
    weight: float = 1.0
    priority: int = 0
    slo_s: float | None = None
    skew: float = 0.1
    model_bytes: int | None = None
    overlap: float | None = None
    """Part of a step during which it sends for nothing; None: not measured."""
    """What all-reduce training sends in a step."""
    spread_speed: float | None = None
    """Fraction of its speed on more nodes than necessary; None: from `model_bytes` and the link if both are known, else
    all."""
    spread_speeds: Mapping[str, float] = field(default_factory=dict)
    """The same by GPU type; on types that are not there `spread_speed` counts."""
    level_speeds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The same by GPU type and how many domains its nodes share, as in `Job`."""
    checkpoint_bytes: int = 0
    """What a preemption has to write and to read."""
    usage: Mapping[str, Usage] = field(default_factory=dict)
    """What it does to a GPU, by type; empty: it shares none."""
    cpu_millis_max: int | None = None
    family: str = ""
    """The model without its batch: tasks of one family are taken to be alike on types that they are not measured on."""
    batch_size: int | None = None
    """Samples per step, over all GPUs."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Tasks by arrival, and where they run."""

    tasks: tuple[Task, ...]
    cluster: Cluster
    pairs: Mapping[str, PairTable] = field(default_factory=dict)
    """What sharing a GPU costs, by GPU type, where that was measured: it holds, and the planner knows it."""


@dataclass(frozen=True, slots=True)
class _Speeds:
    """A model with so many GPUs on a cluster."""

    profiles: Mapping[str, Profile]
    at_share: Mapping[str, float]


def build_workload(
    trace: Sequence[TraceJob], profiles: ProfileTable | None, cluster: Cluster, *, unconsolidated: bool = False
) -> Workload:
    """Join a trace with profiles. Raises InputError that names the line of the trace.

    Without profiles no job is sensitive to CPU and memory; the trace must then give durations. `unconsolidated`: jobs
    without `spread_speed` in the trace have that of the profiles.
    """
    known = _Known(profiles, cluster, unconsolidated=unconsolidated)
    workload = Workload(tuple(_task(job, known, cluster) for job in trace), cluster)
    return workload if profiles is None or not profiles.pairs else _with_pairs(workload, profiles.pairs)


def _with_pairs(workload: Workload, tables: Mapping[str, PairTable]) -> Workload:
    """The workload whose jobs of one GPU share it at the speeds that were measured.

    A table has no speed for what does not fit into a GPU's memory, so a pool need not state its memory.
    """
    types = {
        gpu_type: tables[gpu_type.lower()] for gpu_type in workload.cluster.gpu_types if gpu_type.lower() in tables
    }
    usages = {
        model: dict.fromkeys(types, Usage(compute=0.0, bandwidth=0.0, model=model))
        for model in {task.model for task in workload.tasks}
    }
    tasks = (replace(task, usage=usages[task.model]) if task.gpus == 1 else task for task in workload.tasks)
    pools = (replace(pool, gpu_memory_gib=pool.gpu_memory_gib or 1.0) for pool in workload.cluster.pools)
    return Workload(tuple(tasks), Cluster(tuple(pools)), types)


def with_usages(workload: Workload, usages: Mapping[str, Usage]) -> Workload:
    """The workload whose jobs may share GPUs if their models' usage is known."""
    types = workload.cluster.gpu_types
    tasks = [
        replace(task, usage=dict.fromkeys(types, usages[task.model])) if task.model in usages else task
        for task in workload.tasks
    ]
    return Workload(tuple(tasks), workload.cluster)


def _task(job: TraceJob, known: "_Known", cluster: Cluster) -> Task:
    most = max(cluster.gpus_of(gpu_type) for gpu_type in cluster.gpu_types)
    if job.gpus > most:
        raise _bad(job, "gpus", f"{job.gpus} GPUs are more than the cluster has of one type ({most})")
    speeds = known.speeds(job)
    reference = next(gpu_type for gpu_type in cluster.gpu_types if gpu_type in speeds.at_share)
    steps = job.steps
    if steps is None or not known.has_matrices:
        if job.duration_s is None:
            raise _bad(job, "duration_s", "is missing, and no profiles tell how long its steps take; give one of them")
        work = job.duration_s * speeds.at_share[reference]
    else:
        work = float(steps)
    family, batch_size = _batched(job)
    average = sum(speed * cluster.gpus_of(gpu_type) for gpu_type, speed in speeds.at_share.items()) / cluster.gpus
    return Task(
        name=job.name,
        arrival_s=job.arrival_s,
        gpus=job.gpus,
        model=job.model or "",
        steps=work,
        profiles=speeds.profiles,
        share_steps_per_s=max(speeds.at_share.values()),
        alone_s=work / average,
        tenant=job.tenant,
        weight=job.weight,
        priority=job.priority,
        slo_s=job.slo_s,
        skew=job.skew,
        model_bytes=job.model_bytes,
        spread_speed=job.spread_speed,
        spread_speeds={} if job.spread_speed is not None else known.spread_speeds(job),
        checkpoint_bytes=job.checkpoint_bytes,
        family=family,
        batch_size=batch_size,
    )


_BATCHED: Final = re.compile(r"(.+) \(batch size (\d+)\)")


def _batched(job: TraceJob) -> tuple[str, int | None]:
    """The job's model without its batch, and its samples per step; the Gavel authors' names have a GPU's batch."""
    found = _BATCHED.fullmatch(job.model or "")
    if found is None:
        return job.model or "", job.batch_size
    return found[1], int(found[2]) * job.gpus if job.batch_size is None else job.batch_size


class _Known:
    """Speeds by model and GPUs, each found once."""

    def __init__(self, profiles: ProfileTable | None, cluster: Cluster, *, unconsolidated: bool) -> None:
        self._table = profiles
        self._unconsolidated = unconsolidated
        self._cluster = cluster
        self._pools = node_pools(cluster.nodes())
        self._found: dict[tuple[str, int], _Speeds] = {}

    @property
    def has_matrices(self) -> bool:
        return self._table is not None

    def speeds(self, job: TraceJob) -> _Speeds:
        if self._table is not None and job.model is None:
            raise _bad(job, "model", "is not told by this trace; draw one with a workload split")
        key = (job.model or "", job.gpus)
        if key not in self._found:
            self._found[key] = self._find(job)
        return self._found[key]

    def spread_speeds(self, job: TraceJob) -> dict[str, float]:
        """By GPU type, what part of its speed a job keeps on servers of their own, where the table says so."""
        parts = self._table.spread if self._table is not None and self._unconsolidated else {}
        keys = {gpu_type: (job.model or "", gpu_type.lower(), job.gpus) for gpu_type in self._cluster.gpu_types}
        return {gpu_type: parts[key] for gpu_type, key in keys.items() if key in parts}

    def _find(self, job: TraceJob) -> _Speeds:
        matrices = self._matrices(job)
        tolerance = PlanConfig().demand_tolerance
        at_share: dict[str, float] = {}
        for pool in self._pools:
            one = Job(name="one", gpus=job.gpus, profiles=matrices, gpu_types=(pool.gpu_type,))
            speed = JobClass(one, pool.further, tolerance).best_speed([pool]) if pool.gpu_type in matrices else 0.0
            if speed > 0 and self._cluster.gpus_of(pool.gpu_type) >= job.gpus:
                at_share[pool.gpu_type] = speed
        if not at_share:
            problem = (
                f"{job.model!r} on {job.gpus} GPUs has zero throughput at the proportional share: it would never end"
            )
            raise _bad(job, "model", problem)
        return _Speeds({gpu_type: matrices[gpu_type] for gpu_type in at_share}, at_share)

    def _matrices(self, job: TraceJob) -> dict[str, Profile]:
        types = self._cluster.gpu_types
        if self._table is None:
            return dict.fromkeys(types, flat_profile(1.0))
        model = job.model or ""
        if model not in self._table.models:
            raise _bad(job, "model", f"{model!r} has no profile; known are {', '.join(sorted(self._table.models))}")
        found = {gpu_type: self._table.find(model, gpu_type, job.gpus) for gpu_type in types}
        matrices = {gpu_type: profile for gpu_type, profile in found.items() if profile is not None}
        if not matrices:
            problem = f"{model!r} has no profile for {job.gpus} GPUs on {', '.join(types)}; add one"
            raise _bad(job, "model", problem)
        return matrices


def node_pools(nodes: Sequence[Node]) -> list[NodePool]:
    """The nodes by GPU type."""
    types = sorted({node.gpu_type for node in nodes})
    return [NodePool(gpu_type, [node for node in nodes if node.gpu_type == gpu_type]) for gpu_type in types]


def _bad(job: TraceJob, field: str, problem: str) -> InputError:
    return InputError(InputLocation(job.place.file, job.place.line, field), problem)
