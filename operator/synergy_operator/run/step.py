"""The result of following an open run by one step."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from synergy_api.parts.service import RunOutcome, ServiceStatus
from synergy_api.parts.sizes import SizeLimits
from synergy_api.reasons import Finding, Reason, say
from synergy_operator.actions import Action
from synergy_operator.conditions import ConditionUpdate

Stage = Literal["Starting", "Running", "Leaving", "Closed"]


@dataclass(frozen=True, slots=True)
class RunStep:
    """What changes in the status, and what is done before and after it is written.

    - `before` has actions whose result can be observed again. `after` has actions that rest on a recorded decision.
    - With `unwritten` there is nothing to write before the next reconcile, which follows at once.
    - `requeue_after` is in seconds. `started` is when the closed run had begun to train.
    """

    stage: Stage
    service: ServiceStatus
    running: ConditionUpdate
    before: tuple[Action, ...] = ()
    after: tuple[Action, ...] = ()
    unwritten: bool = False
    requeue_after: float | None = None
    started: str | None = None
    updates: Mapping[str, ConditionUpdate] = field(default_factory=dict)
    size_limits: SizeLimits | None = None


def recorded_outcome(service: ServiceStatus, run: int) -> RunOutcome | None:
    """The recorded outcome of the open run; None while it is undecided. A run with an outcome is taken down."""
    return service.last if service.last is not None and service.last.run == run else None


def reason_text(finding: Finding) -> str:
    """A finding as `service.last.reason` stores it."""
    return f"{finding.reason.value}: {finding.message}"


def reason_of(outcome: RunOutcome) -> Finding:
    """The finding that `reason_text` stored. Reasons that this version does not know are passed on unchanged."""
    found = finding_of(outcome.reason)
    return found or say(Reason.RUN_ENDED, run=outcome.run, problem=outcome.reason or outcome.outcome)


def finding_of(text: str) -> Finding | None:
    """The finding that `reason_text` stored; None for a reason that this version does not know."""
    word, _, message = text.partition(": ")
    return Finding(Reason(word), message) if word in Reason.__members__.values() else None


def earliest(*moments: float | None) -> float | None:
    """The shortest of several waits, in seconds; None if there is none."""
    given = [moment for moment in moments if moment is not None]
    return min(given) if given else None
