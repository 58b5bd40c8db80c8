"""The condition OnTime of a job with a deadline: what the plan expects, and in the end what happened."""

from typing import Final

from synergy_api.base import Condition
from synergy_api.parts.waiting import Slo
from synergy_api.reasons import Finding, Reason, say
from synergy_api.resources.training_job import Phase, TrainingJobStatus
from synergy_api.timestamps import parse_time
from synergy_operator.conditions import ON_TIME, ConditionUpdate, no, yes

_REASONS_OF_PLANS: Final = frozenset({Reason.DEADLINE_TOO_TIGHT, Reason.DEADLINES_COLLIDE})


def on_time(slo: Slo | None, status: TrainingJobStatus, end: Phase | None, now: float) -> ConditionUpdate | None:
    """The condition `OnTime`; None if it has nothing to say, or nothing new.

    `end` is the phase in which the job has just ended. The planner reports deadlines that do not parse.
    """
    due = _due(slo)
    if due is None or end == "Failed":
        return None
    if end == "Succeeded":
        return yes(say(Reason.DEADLINE_KEPT)) if now <= due else no(say(Reason.DEADLINE_MISSED))
    if now >= due:
        return no(say(Reason.DEADLINE_PAST))
    late = status.late
    if late is not None and late.reason in _REASONS_OF_PLANS:
        return no(Finding(Reason(late.reason), late.message))
    return yes(say(Reason.DEADLINE_AHEAD))


def seconds_left(slo: Slo | None, now: float) -> float | None:
    """Seconds until the deadline, when the condition may change; None after it."""
    due = _due(slo)
    return due - now if due is not None and due > now else None


def still_applies(condition: Condition, slo: Slo | None) -> bool:
    """The condition may stay. `OnTime` may not after the deadline was removed."""
    return condition.type != ON_TIME or slo is not None


def _due(slo: Slo | None) -> float | None:
    try:
        return None if slo is None else parse_time(slo.deadline)
    except ValueError:
        return None
