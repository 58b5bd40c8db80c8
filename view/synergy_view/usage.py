"""What jobs have had of the cluster, by tenant and namespace."""

from collections.abc import Iterable
from dataclasses import dataclass

from synergy_view.queue import waited
from synergy_view.seen import SeenJob
from synergy_view.top import gpu_hours


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """The jobs of one namespace that count for one tenant."""

    tenant: str
    namespace: str
    jobs: int
    finished: int
    gpu_hours: float
    waiting_hours: float
    """Of the jobs that are not finished: what they have waited so far."""
    gain: float | None
    """Speed over that at the GPU-proportional share, weighted by GPUs: of the running jobs whose matrix is known. By a
    recorder's history, of all GPU-hours."""
    preemptions: int


def usage(jobs: Iterable[SeenJob], now: float) -> list[UsageRow]:
    """A row for each tenant and namespace, the most GPU-hours first. Deleted jobs are not counted."""
    groups: dict[tuple[str, str], list[SeenJob]] = {}
    for job in jobs:
        groups.setdefault((job.tenant, job.namespace), []).append(job)
    rows = [_row(tenant, namespace, own, now) for (tenant, namespace), own in groups.items()]
    return sorted(rows, key=lambda row: (-row.gpu_hours, row.tenant, row.namespace))


def _row(tenant: str, namespace: str, jobs: list[SeenJob], now: float) -> UsageRow:
    return UsageRow(
        tenant=tenant,
        namespace=namespace,
        jobs=len(jobs),
        finished=sum(job.finished for job in jobs),
        gpu_hours=sum(gpu_hours(job, now) for job in jobs),
        waiting_hours=sum(waited(job, now) for job in jobs if not job.finished and not job.gpus_held) / 3600,
        gain=_gain(jobs),
        preemptions=sum(job.status.service.preemptions for job in jobs if job.status.service is not None),
    )


def _gain(jobs: Iterable[SeenJob]) -> float | None:
    gpus, sum_of_gains = 0, 0.0
    for job in jobs:
        allocation = job.status.allocation
        if allocation is None or not job.gpus_held:
            continue
        if allocation.steps_per_second > 0 and allocation.proportional_steps_per_second > 0:
            gpus += job.gpus_held
            sum_of_gains += job.gpus_held * allocation.steps_per_second / allocation.proportional_steps_per_second
    return sum_of_gains / gpus if gpus else None
