"""What a waiting job is told: its place in line, one reason, the next step."""

from collections.abc import Iterable, Mapping

from synergy_api.timestamps import format_time, parse_time
from synergy_api.training_job import QueueStatus
from synergy_core import model as core
from synergy_extender.cluster.views import JobView, Key
from synergy_extender.planning.standing import service_of

BACKING_OFF = "BackingOff"
"""Reason of a job that waits for its `retryAt`; beside the planner's own reasons."""
CANNOT_BE_PLANNED = "CannotBePlanned"
"""Reason of a job whose spec contradicts itself in the planner's eyes."""


def queue_of(
    plan: core.Plan, backing_off: Iterable[JobView], refused: Mapping[Key, str], keys: Mapping[str, Key]
) -> dict[Key, QueueStatus]:
    """The queue in the policy's order, then the jobs that back off, then those that cannot be planned."""
    queue: dict[Key, QueueStatus] = {}
    for waiting in plan.waiting:
        _append(queue, keys.get(waiting.job), waiting.reason, waiting.message)
    for job in sorted(backing_off, key=lambda job: job.key):
        _append(queue, job.key, BACKING_OFF, _backoff(job))
    for key in sorted(refused):
        _append(queue, key, CANNOT_BE_PLANNED, f"{refused[key]}: correct the job's spec")
    return queue


def _append(queue: dict[Key, QueueStatus], key: Key | None, reason: str, message: str) -> None:
    if key is not None:
        queue[key] = QueueStatus(position=len(queue) + 1, reason=reason, message=message)


def _backoff(job: JobView) -> str:
    service = service_of(job)
    until = format_time(parse_time(service.retry_at or "1970-01-01T00:00:00Z"))
    return f"the last run failed; failure {service.failures} of {job.spec.backoff_limit}. It is tried again at {until}."
