"""The one problem that keeps a job from continuing, for `kubectl get` and the top of `kubectl describe`."""

from typing import Final

from synergy_api.parts.waiting import JobProblem
from synergy_api.reasons import ENTRIES, Finding, Reason
from synergy_api.resources.training_job import Phase, TrainingJobStatus
from synergy_operator.conditions import FINISHED, PROFILED, RUNNING, VALID, find
from synergy_operator.run.step import reason_of

_GOES_ON: Final[tuple[Phase, ...]] = ("Running", "Yielding", "Succeeded", "Suspended")


def problem_of(status: TrainingJobStatus) -> JobProblem | None:
    """What has to change, or what failed last; None while the job runs, has succeeded, or merely waits in the queue."""
    if status.phase in _GOES_ON:
        return None
    finding = _root(status) or _first_warning(status)
    return JobProblem(reason=finding.reason.value, message=finding.message) if finding is not None else None


def _root(status: TrainingJobStatus) -> Finding | None:
    """The reason of the last run's failure, which says more than that there were too many failures."""
    end = find(status.conditions, FINISHED)
    if end is None or end.reason != Reason.BACKOFF_LIMIT_EXCEEDED or status.service is None:
        return None
    last = status.service.last
    return Finding(reason_of(last).reason, end.message) if last is not None else None


def _first_warning(status: TrainingJobStatus) -> Finding | None:
    for kind in (VALID, PROFILED, RUNNING, FINISHED):
        condition = find(status.conditions, kind)
        if condition is None or condition.reason not in Reason.__members__.values():
            continue
        reason = Reason(condition.reason)
        bad = condition.status != "True" or kind == FINISHED
        if bad and ENTRIES[reason].event == "Warning":
            return Finding(reason, condition.message)
    return None
