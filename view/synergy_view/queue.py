"""Which jobs wait, in the policy's order, and what for."""

from collections.abc import Iterable
from dataclasses import dataclass

from synergy_api.length import total_steps
from synergy_view.seen import SeenJob
from synergy_view.why import why


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    """A job that does not run."""

    namespace: str
    job: str
    position: int | None
    """Place among the waiting jobs in the order of the policy; None while the job is not planned."""
    reason: str
    message: str
    gpus: int
    gpu_types: tuple[str, ...]
    """The types that it may use; empty: any."""
    steps_done: int
    steps: int | None
    """None while nobody knows how many it has, and where it ends by time."""
    waiting_s: float
    """Since it was created, without the time in which it ran or was suspended."""
    start_s: float | None
    """When it will start by the extender's estimate, seconds since the epoch: with even chances sooner or later; None
    while that is not known."""
    start_by_s: float | None
    """By then it will have started in nine of ten forecasts."""
    cluster: str = ""
    """The worker cluster in whose queue it is; empty if it is in this cluster's."""


def queue(jobs: Iterable[SeenJob], now: float) -> list[QueueRow]:
    """The jobs that hold no GPUs and are not finished: first those in the queue by position, then those that are not
    planned, the oldest first."""
    rows = [(queue_order(job), queue_row(job, now)) for job in jobs if waits(job)]
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def waits(job: SeenJob) -> bool:
    """Whether the job is in the queue."""
    return not job.finished and not job.gpus_held and not job.deleting and not job.is_array


def queue_order(job: SeenJob) -> tuple[bool, int, float, str]:
    """What the queue is sorted by."""
    entry = job.status.queue
    return entry is None, entry.position if entry is not None else 0, job.created_s, job.full_name


def queue_row(job: SeenJob, now: float) -> QueueRow:
    """A job that waits."""
    answer = why(job, (), now)
    entry, progress = job.status.queue, job.status.progress
    return QueueRow(
        namespace=job.namespace,
        job=job.name,
        position=entry.position if entry is not None else None,
        reason=answer.reason,
        message=answer.message,
        gpus=job.spec.gpus,
        gpu_types=tuple(job.spec.gpu_types),
        steps_done=progress.steps if progress is not None else 0,
        steps=total_steps(job.spec, job.status),
        waiting_s=waited(job, now),
        start_s=answer.start_s,
        start_by_s=answer.start_by_s,
        cluster=job.cluster,
    )


def waited(job: SeenJob, now: float) -> float:
    """Seconds since the job was created in which it did not run and was not suspended."""
    service = job.status.service
    if service is None:
        return max(0.0, now - job.created_s)
    ran = sum(service.received_seconds.values())
    return max(0.0, now - job.created_s - ran - service.suspended_seconds)
