"""What the status of a waiting job says: its position in the scheduling queue, one reason, the next step."""

from collections.abc import Iterable, Mapping
from typing import Final

from synergy_api.parts.waiting import QueueStatus
from synergy_api.reasons import Finding, Reason, say
from synergy_api.timestamps import format_time, parse_time
from synergy_core.model.answer import Plan, Waiting
from synergy_extender.cluster.run_state import service_of
from synergy_extender.cluster.views import JobView, Key
from synergy_extender.colocation.order import key_of

_EXACT: Final = 10


def queue_of(
    plan: Plan, jobs: Mapping[Key, JobView], backing_off: Iterable[JobView], refused: Mapping[Key, Finding]
) -> dict[Key, QueueStatus]:
    """The queue in the policy's order, then the jobs that back off, then those that cannot be planned. `jobs` are those
    that have a position."""
    queue: dict[Key, QueueStatus] = {}
    for waiting in plan.waiting:
        asked = jobs.get(key_of(waiting.job))
        if asked is not None:
            _append(queue, asked, Finding(Reason(waiting.reason), _told(waiting)))
    for job in sorted(backing_off, key=lambda job: job.key):
        _append(queue, job, _backoff(job))
    for key in sorted(refused.keys() & jobs.keys()):
        _append(queue, jobs[key], refused[key])
    return queue


def _told(waiting: Waiting) -> str:
    """Its message, with the time when the nodes are expected that it waits for."""
    if waiting.at is None:
        return waiting.message
    return f"{waiting.message} They are expected at {format_time(float(int(waiting.at)))}."


def _append(queue: dict[Key, QueueStatus], job: JobView, why: Finding) -> None:
    position, told = len(queue) + 1, job.status.queue
    new = QueueStatus(position=position, reason=why.reason.value, message=why.message)
    same = told is not None and told.told[1:] == new.told[1:] and is_near(told.position, position)
    queue[job.key] = told if told is not None and same else new


def is_near(told: int, position: int) -> bool:
    """Whether a position that was told needs no correction: it is right among the first ten, and within a tenth behind
    them. So a job that comes or goes changes the positions of some others, and not of all behind it."""
    return told == position or (min(told, position) > _EXACT and abs(told - position) <= position // _EXACT)


def _backoff(job: JobView) -> Finding:
    service = service_of(job)
    until = format_time(parse_time(service.retry_at or "1970-01-01T00:00:00Z"))
    failed = service.last is None or service.last.outcome == "Failed"
    how = f"failed; failure {service.counted_failures} of {job.spec.backoff_limit}" if failed else "was lost or refused"
    return say(Reason.BACKING_OFF, how=how, until=until)
