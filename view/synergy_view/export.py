"""A cluster's jobs as the simulator's inputs: a trace, profiles, and the nodes as pools (`docs/simulator.md`)."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from synergy_api.cluster.pools import NodeCapacity
from synergy_api.length import total_steps
from synergy_api.program import model
from synergy_api.timestamps import parse_time
from synergy_view.seen import SeenJob
from synergy_view.surface import surfaces

_GIB: Final = 1 << 30
COLUMNS: Final = (
    "job_id", "arrival_s", "gpus", "model", "steps", "tenant", "weight", "slo_s", "batch_size", "skew", "model_bytes",
)  # fmt: skip
ANY_AMOUNT: Final = ([0.001], [0.001])
"""CPUs and GiB of a matrix with one point: the speed is the same with all that a job can have."""
NO_STEPS: Final = "is left out: the number of its steps is not known"
Cells = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How the exported jobs did: how many have ended, after how long on average (None: none has), and the seconds from
    the grant of GPUs until a job trained, the first time and later (0: not known)."""

    ended: int
    avg_jct_s: float | None
    start_s: float = 0.0
    restart_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Export:
    """Rows of the trace by arrival, the profiles as their JSON, the cluster as its YAML, and what is left out or
    coarser than in truth."""

    trace: tuple[dict[str, Any], ...]
    profiles: dict[str, Any]
    cluster: dict[str, Any] | None
    """None where no node can be seen."""
    notes: tuple[str, ...]
    jcts_s: tuple[float, ...] = ()
    """From creation to end, of those jobs of the trace that have ended."""


def export(
    jobs: Iterable[SeenJob], capacities: Sequence[NodeCapacity], since_s: float, *, round_s: float = 1.0
) -> Export:
    """The jobs that were created since `since_s` (seconds since the epoch), by arrival (`by_arrival`)."""
    chosen = sorted(
        (job for job in jobs if job.created_s >= since_s and not job.is_array),
        key=lambda job: (job.created_s, job.full_name),
    )
    models: dict[str, dict[str, dict[str, Any]]] = {}
    kept: list[tuple[SeenJob, str]] = []
    notes = []
    for job in chosen:
        found, note = _matrices(job)
        if note:
            notes.append(f"{job.full_name}: {note}")
        if not found:
            continue
        if not steps_known(job):
            notes.append(f"{job.full_name}: {NO_STEPS}")
            continue
        name = _model(job)
        for gpu_type, matrix in found.items():
            models.setdefault(name, {}).setdefault(gpu_type, {})[str(job.spec.gpus)] = matrix
        kept.append((job, name))
    pools = _pools(capacities)
    if not pools:
        notes.append("no GPU node can be seen: write cluster.yaml yourself")
    trace = by_arrival([_row(job, name) for job, name in kept], round_s)
    jcts = [jct for job, _ in kept if (jct := _jct_s(job)) is not None]
    return Export(trace, {"models": models}, {"pools": pools} if pools else None, tuple(notes), tuple(jcts))


def by_arrival(rows: Iterable[Mapping[str, Any]], round_s: float) -> tuple[dict[str, Any], ...]:
    """The rows of a trace, in any order, as `from_begin` makes them."""
    return tuple(from_begin(sorted(rows, key=arrival), round_s))


def arrival(row: Mapping[str, Any]) -> tuple[float, str]:
    """What the rows of a trace are sorted by."""
    return row["arrival_s"], row["job_id"]


def from_begin(rows: Iterable[Mapping[str, Any]], round_s: float) -> Iterator[dict[str, Any]]:
    """The rows of a trace by arrival, whose `arrival_s` is in seconds since the epoch. In the result it counts from the
    begin of the round in which the first job came: the simulator then plans at the moments at which the cluster did.
    Jobs that had one name after the other are told apart."""
    begin = None
    names = Counter[str]()
    for row in rows:
        if begin is None:
            begin = math.floor(row["arrival_s"] / round_s) * round_s
        name = row["job_id"]
        names[name] += 1
        again = f"{name}#{names[name]}" if names[name] > 1 else name
        yield {**row, "job_id": again, "arrival_s": round(row["arrival_s"] - begin)}


def steps_known(job: SeenJob) -> int:
    """Steps of the whole job, for one that ends by time those that it did; 0 if that is not known yet."""
    progress = job.status.progress
    done = progress.steps if progress is not None and job.finished else 0
    return total_steps(job.spec, job.status) or done


def _jct_s(job: SeenJob) -> float | None:
    ended = job.status.completion_time
    return parse_time(ended) - job.created_s if ended is not None and job.finished else None


def _model(job: SeenJob) -> str:
    """What the job trains, with the GPU types that it may use: a trace cannot say these, but profiles can, by having
    no matrix for the others."""
    template = job.spec.template
    name = model(template, gpus=job.spec.gpus, batch_size=job.spec.batch_size) or job.full_name
    return "@".join((name, "+".join(sorted(job.spec.gpu_types)))) if job.spec.gpu_types else name


def _matrices(job: SeenJob) -> tuple[dict[str, dict[str, Any]], str]:
    """The matrices by GPU type, with notes on them."""
    allowed = set(job.spec.gpu_types)
    measured = () if job.spec.profile.mode == "Skip" else surfaces(job)
    found = {
        one.gpu_type: matrix_of(
            [millis / 1000 for millis in one.cpu_millis], [size / _GIB for size in one.memory_bytes], one.steps_per_s
        )
        for one in measured
        if not allowed or one.gpu_type in allowed
    }
    if found:
        return found, ""
    speeds = _speeds(job)
    if not speeds:
        return {}, "is left out: it has no matrices, and its speed is not known"
    return {kind: matrix_of(*ANY_AMOUNT, [[speed]]) for kind, speed in speeds.items()}, (
        "has no matrices: its measured speed stands for all amounts of CPU and memory"
    )


def matrix_of(cpus: Sequence[float], memory: Sequence[float], speeds: Sequence[Sequence[float]]) -> dict[str, Any]:
    """A matrix as the simulator reads it: `memory` in GiB."""
    return {"cpus": list(cpus), "memory_gib": list(memory), "steps_per_s": [list(row) for row in speeds]}


def _speeds(job: SeenJob) -> dict[str, float]:
    """Speeds that were seen, by GPU type: as the job reported them, else its steps over the time on one type."""
    progress, service = job.status.progress, job.status.service
    if progress is None:
        return {}
    found = {one.gpu_type: one.steps_per_second for one in job.status.measured_speeds if one.steps_per_second > 0}
    if job.gpu_type and progress.steps_per_second > 0:
        found[job.gpu_type] = progress.steps_per_second
    received = {} if service is None else {kind: s for kind, s in service.received_seconds.items() if s > 0}
    if not found and len(received) == 1 and progress.steps:
        ((kind, seconds),) = received.items()
        found[kind] = progress.steps / seconds
    return found


def _row(job: SeenJob, name: str) -> dict[str, Any]:
    spec, progress = job.spec, job.status.progress
    tensors = (progress.largest_tensor_bytes, progress.model_bytes) if progress is not None else (None, None)
    deadline = _deadline_after_s(job)
    cells: dict[str, Any] = {
        "job_id": job.full_name,
        "arrival_s": job.created_s,
        "gpus": spec.gpus,
        "model": name,
        "steps": steps_known(job),
        "tenant": job.tenant,
        "weight": spec.weight,
        "slo_s": round(deadline) if deadline is not None and deadline > 0 else None,
        "batch_size": spec.batch_size,
        "skew": round(tensors[0] / tensors[1], 6) if tensors[0] and tensors[1] else None,
        "model_bytes": tensors[1] or None,
    }
    return cells


def _deadline_after_s(job: SeenJob) -> float | None:
    """Seconds from the job's creation to its deadline; None without one that can be read."""
    try:
        return None if job.spec.slo is None else parse_time(job.spec.slo.deadline) - job.created_s
    except ValueError:
        return None


def _pools(capacities: Sequence[NodeCapacity]) -> list[dict[str, Any]]:
    """Nodes that are alike, as one pool."""
    alike: dict[tuple[Any, ...], list[NodeCapacity]] = {}
    for node in capacities:
        if node.gpu_type and node.gpus and node.schedulable:
            memory = node.gpu_memory_bytes, node.client_thread_percent
            key = node.gpu_type, node.gpus, *node.amounts[1:3], node.price_per_hour, node.clients, *memory
            alike.setdefault(key, []).append(node)
    found = []
    for index, group in enumerate(sorted(alike.values(), key=lambda group: group[0].name), start=1):
        first = group[0]
        pool: dict[str, Any] = {
            "name": f"{first.pool or first.gpu_type.lower()}-{index}",
            "gpu_type": first.gpu_type,
            "nodes": len(group),
            "gpus_per_node": first.gpus,
            "cpus_per_node": first.amounts.cpu_millis / 1000,
            "memory_gib_per_node": first.amounts.memory_bytes / _GIB,
            "cost_per_hour": first.price_per_hour,
            "replicas": first.clients,
        }
        if first.gpu_memory_bytes:
            pool["gpu_memory_gib"] = first.gpu_memory_bytes / _GIB
        if first.client_thread_percent != 100:
            pool["client_thread_percent"] = first.client_thread_percent
        found.append(pool)
    return found
