"""The events of a status change: few, each a step in the job's life or something to act on.

They follow from the difference between two statuses, so that each is posted once, by whoever wrote the second.
"""

from collections.abc import Iterator
from typing import Final

from synergy_api.quantity import format_cpu
from synergy_api.training_job import TrainingJobStatus
from synergy_operator.actions import PostEvent
from synergy_operator.conditions import FINISHED, PROFILED, RESOURCES, RUNNING, VALID, find
from synergy_operator.reasons import Reason
from synergy_operator.run_step import reason_of

_BAD_OUTCOMES: Final = ("Failed", "Evicted")
_TOLD: Final = frozenset(
    {
        Reason.PROFILE_PROVIDED,
        Reason.PROFILE_KNOWN,
        Reason.PROFILE_MEASURED,
        Reason.SUSPENDED,
        Reason.WORKERS_RUNNING,
        Reason.YIELDING,
    }
)
_WARNED: Final = frozenset(
    {
        Reason.NO_NODE_TO_PROFILE,
        Reason.PROFILE_CRASHED,
        Reason.PROFILE_NO_STEPS,
        Reason.PROFILE_TIMEOUT,
        Reason.PROFILE_TOO_NOISY,
        Reason.PROFILE_BAD_COMMAND,
        Reason.PROFILE_OUT_OF_MEMORY,
        Reason.PROFILE_NO_RESULT,
        Reason.WORKER_WAITING,
        Reason.RESIZE_PENDING,
        Reason.RESIZE_REFUSED,
        Reason.SIDECARS_TOO_LARGE,
    }
)


def events(old: TrainingJobStatus, new: TrainingJobStatus) -> tuple[PostEvent, ...]:
    """What to tell the user of the change from `old` to `new`."""
    return (*_of_points(old, new), *_of_runs(old, new), *_of_conditions(old, new))


def _of_points(old: TrainingJobStatus, new: TrainingJobStatus) -> Iterator[PostEvent]:
    known = {point.job for point in old.profile.points} if old.profile else set()
    for point in new.profile.points if new.profile else []:
        if point.job not in known:
            speed = f"{point.steps_per_second:.3g} steps/s with {format_cpu(point.cpu_millis)} CPU on {point.gpu_type}"
            yield PostEvent("Normal", "PointMeasured", speed)


def _of_runs(old: TrainingJobStatus, new: TrainingJobStatus) -> Iterator[PostEvent]:
    before = old.service.last if old.service else None
    last = new.service.last if new.service else None
    if last is not None and (before is None or before.run != last.run):
        finding = reason_of(last)
        yield PostEvent("Warning" if last.outcome in _BAD_OUTCOMES else "Normal", finding.reason.value, finding.message)


def _of_conditions(old: TrainingJobStatus, new: TrainingJobStatus) -> Iterator[PostEvent]:
    for kind in (VALID, PROFILED, RUNNING, RESOURCES, FINISHED):
        before, after = find(old.conditions, kind), find(new.conditions, kind)
        if after is None or (before is not None and before.reason == after.reason):
            continue
        reason = Reason(after.reason)
        refused = kind == VALID and after.status == "False"
        if refused or reason in _WARNED:
            yield PostEvent("Warning", reason.value, after.message)
        elif kind == FINISHED and after.status == "True":
            yield PostEvent("Normal" if reason is Reason.JOB_SUCCEEDED else "Warning", reason.value, after.message)
        elif reason in _TOLD or (reason is Reason.AS_PLANNED and before is not None):
            yield PostEvent("Normal", reason.value, after.message)
