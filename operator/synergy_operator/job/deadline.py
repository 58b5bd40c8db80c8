"""Whether a job with a deadline will be on time: what the plan says of it, and in the end what was."""

from typing import Final

from synergy_api.base import Condition
from synergy_api.reasons import Finding, Reason, say
from synergy_api.timestamps import parse_time
from synergy_api.training_job import Phase, Slo, TrainingJobStatus
from synergy_operator.conditions import ON_TIME, Verdict, no, yes

_SAID_BY_PLANS: Final = frozenset({Reason.DEADLINE_TOO_TIGHT, Reason.DEADLINES_COLLIDE})


def on_time(slo: Slo | None, status: TrainingJobStatus, end: Phase | None, now: float) -> Verdict | None:
    """The condition `OnTime`; `end` is the phase that the job has just ended in. None: it says nothing, or nothing new.

    A deadline that does not parse is the planner's to tell.
    """
    due = _due(slo)
    if due is None or end == "Failed":
        return None
    if end == "Succeeded":
        return yes(say(Reason.DEADLINE_KEPT)) if now <= due else no(say(Reason.DEADLINE_MISSED))
    if now >= due:
        return no(say(Reason.DEADLINE_PAST))
    late = status.late
    if late is not None and late.reason in _SAID_BY_PLANS:
        return no(Finding(Reason(late.reason), late.message))
    return yes(say(Reason.DEADLINE_AHEAD))


def seconds_left(slo: Slo | None, now: float) -> float | None:
    """Seconds until the deadline, when the condition is to be looked at again; None once it is over."""
    due = _due(slo)
    return due - now if due is not None and due > now else None


def still_said(condition: Condition, slo: Slo | None) -> bool:
    """Whether a condition may stay: that of a deadline which was taken away may not."""
    return condition.type != ON_TIME or slo is not None


def _due(slo: Slo | None) -> float | None:
    try:
        return None if slo is None else parse_time(slo.deadline)
    except ValueError:
        return None
