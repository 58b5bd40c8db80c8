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
    plan: core.Plan, jobs: Mapping[Key, JobView], backing_off: Iterable[JobView], refused: Mapping[Key, str]
) -> dict[Key, QueueStatus]:
    """The queue in the policy's order, then the jobs that back off, then those that cannot be planned."""
    names = {str(key): key for key in jobs}
    queue: dict[Key, QueueStatus] = {}
    for waiting in plan.waiting:
        if waiting.job in names:
            _append(queue, jobs[names[waiting.job]], waiting.reason, waiting.message)
    for job in sorted(backing_off, key=lambda job: job.key):
        _append(queue, job, BACKING_OFF, _backoff(job))
    for key in sorted(refused.keys() & jobs.keys()):
        _append(queue, jobs[key], CANNOT_BE_PLANNED, f"{refused[key]}: correct the job's spec")
    return queue


def _append(queue: dict[Key, QueueStatus], job: JobView, reason: str, message: str) -> None:
    position, told = len(queue) + 1, job.status.queue
    if told is not None and (told.position, told.reason, told.message) == (position, reason, message):
        queue[job.key] = told
    else:
        queue[job.key] = QueueStatus(position=position, reason=reason, message=message)


def _backoff(job: JobView) -> str:
    service = service_of(job)
    until = format_time(parse_time(service.retry_at or "1970-01-01T00:00:00Z"))
    return f"the last run failed; failure {service.failures} of {job.spec.backoff_limit}. It is tried again at {until}."
