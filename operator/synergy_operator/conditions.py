"""Conditions as the Kubernetes API conventions define them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from synergy_api.base import Condition
from synergy_api.reasons import Finding
from synergy_api.timestamps import format_time

VALID: Final = "Valid"
PROFILED: Final = "Profiled"
SPEEDS: Final = "SpeedsMeasured"
RUNNING: Final = "Running"
RESOURCES: Final = "ResourcesAsPlanned"
ON_TIME: Final = "OnTime"
FINISHED: Final = "Finished"
ORDER: Final = (VALID, PROFILED, SPEEDS, RUNNING, RESOURCES, ON_TIME, FINISHED)

_LONGEST_MESSAGE: Final = 4096


@dataclass(frozen=True, slots=True)
class Verdict:
    """Status, reason and message that a condition gets."""

    status: Literal["True", "False", "Unknown"]
    finding: Finding


def yes(finding: Finding) -> Verdict:
    """The condition is true."""
    return Verdict("True", finding)


def no(finding: Finding) -> Verdict:
    """The condition is false."""
    return Verdict("False", finding)


def find(conditions: Iterable[Condition], kind: str) -> Condition | None:
    """The condition of one type, or None."""
    return next((c for c in conditions if c.type == kind), None)


def write(
    old: Iterable[Condition], verdicts: Mapping[str, Verdict | None], generation: int, now: float
) -> list[Condition]:
    """The conditions after `verdicts`, by type; None keeps a condition as it was.

    `lastTransitionTime` changes only when the status changes. `now` is Unix time.
    """
    before = {condition.type: condition for condition in old}
    after: list[Condition] = []
    for kind in ORDER:
        verdict, previous = verdicts.get(kind), before.get(kind)
        if verdict is not None:
            after.append(_next(kind, verdict, previous, generation, now))
        elif previous is not None:
            after.append(previous)
    return after


def _next(kind: str, verdict: Verdict, previous: Condition | None, generation: int, now: float) -> Condition:
    flipped = previous is None or previous.status != verdict.status
    return Condition(
        type=kind,
        status=verdict.status,
        reason=verdict.finding.reason.value,
        message=verdict.finding.message[:_LONGEST_MESSAGE],
        last_transition_time=format_time(now) if flipped or previous is None else previous.last_transition_time,
        observed_generation=generation,
    )
