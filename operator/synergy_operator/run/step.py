"""What following an open run for one step comes to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from synergy_api.reasons import Finding, Reason, say
from synergy_api.sizes import SizeLimits
from synergy_api.training_job import RunOutcome, ServiceStatus
from synergy_operator.actions import Action
from synergy_operator.conditions import Verdict

Stage = Literal["Starting", "Running", "Leaving", "Closed"]


@dataclass(frozen=True, slots=True)
class RunStep:
    """`before` is done before the status is written, `after` once it is: what can be found again by looking comes
    before, what rests on a recorded decision comes after. With `unwritten` there is nothing to write before the next
    look, which comes at once. `look_again_in` is in seconds; `started` is when the closed run had begun to run."""

    stage: Stage
    service: ServiceStatus
    running: Verdict
    before: tuple[Action, ...] = ()
    after: tuple[Action, ...] = ()
    unwritten: bool = False
    look_again_in: float | None = None
    started: str | None = None
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    size_limits: SizeLimits | None = None


def recorded_outcome(service: ServiceStatus, run: int) -> RunOutcome | None:
    """How the open run is to end, once that is recorded: it is taken down until it holds nothing."""
    return service.last if service.last is not None and service.last.run == run else None


def reason_text(finding: Finding) -> str:
    """A finding as it stands in `service.last.reason`."""
    return f"{finding.reason.value}: {finding.message}"


def reason_of(outcome: RunOutcome) -> Finding:
    """The finding that `reason_text` wrote; words of another version's list are passed on as they are."""
    found = finding_of(outcome.reason)
    return found or say(Reason.RUN_ENDED, run=outcome.run, problem=outcome.reason or outcome.outcome)


def finding_of(text: str) -> Finding | None:
    """The finding that `reason_text` wrote; None for words of another version's list."""
    word, _, message = text.partition(": ")
    return Finding(Reason(word), message) if word in Reason.__members__.values() else None


def earliest(*moments: float | None) -> float | None:
    """The earliest of several waits, in seconds."""
    given = [moment for moment in moments if moment is not None]
    return min(given) if given else None
