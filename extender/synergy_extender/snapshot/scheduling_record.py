"""What policies go by from plan to plan, kept in the job's status: the clocks of the discretised queues (Tiresias,
section 3.2.3), and what the job's progress would have taken in isolation (Gavel, section 4.2).

All of it is absolute - a moment, and what the job had in all at that moment - and is written with the place that the
same plan gives. So a plan whose write was lost leaves nothing behind and the next one decides the same, and what is
written a second time changes nothing.
"""

from synergy_api.parts.queues import Marks
from synergy_api.timestamps import format_time, parse_time
from synergy_core.model.answer import IsolatedTime
from synergy_extender.cluster.run_state import attained_gpu_seconds, waiting_seconds
from synergy_extender.cluster.views import JobView

_NONE = Marks()


def marks_of(job: JobView) -> Marks:
    """The job's marks, empty before it first got GPUs."""
    return job.status.marks or _NONE


def started_s(job: JobView) -> float | None:
    """When it first got GPUs, Unix time. A job that ran before there were marks has only what the operator saw."""
    since = marks_of(job).started_at or job.status.start_time
    return parse_time(since) if since is not None else None


def started(before: Marks | None, job: JobView, now: float) -> Marks:
    """The marks of a job that is given GPUs to train."""
    since = started_s(job)
    return (before or _NONE).model_copy(update={"started_at": format_time(now if since is None else since)})


def counted(job: JobView) -> Marks:
    """The marks of a finished job whose service is in the history."""
    return marks_of(job).model_copy(update={"counted": True})


def isolated(before: Marks | None, entry: IsolatedTime) -> Marks:
    """The marks of a job whose progress would have taken this long in isolation."""
    account = {"isolated_seconds": round(entry.seconds, 3), "isolated_steps": entry.steps}
    return (before or _NONE).model_copy(update=account)


def promoted(job: JobView, now: float) -> Marks:
    """The marks of a job that goes back to the first queue: both of its clocks begin anew."""
    clocks = {
        "promoted_gpu_seconds": attained_gpu_seconds(job, now),
        "promoted_waiting_seconds": waiting_seconds(job, now),
    }
    return marks_of(job).model_copy(update={"promoted_at": format_time(now), **clocks})
