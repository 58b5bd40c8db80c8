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
class ConditionUpdate:
    """Status, reason and message that a condition gets."""

    status: Literal["True", "False", "Unknown"]
    finding: Finding


def yes(finding: Finding) -> ConditionUpdate:
    """The condition is true."""
    return ConditionUpdate("True", finding)


def no(finding: Finding) -> ConditionUpdate:
    """The condition is false."""
    return ConditionUpdate("False", finding)


def find(conditions: Iterable[Condition], kind: str) -> Condition | None:
    """The condition of one type, or None."""
    return next((c for c in conditions if c.type == kind), None)


def write(
    old: Iterable[Condition], updates: Mapping[str, ConditionUpdate | None], generation: int, now: float
) -> list[Condition]:
    """The conditions after `updates`, by type; None keeps a condition as it was.

    `lastTransitionTime` changes only when the status changes. `now` is Unix time.
    """
    before = {condition.type: condition for condition in old}
    after: list[Condition] = []
    for kind in ORDER:
        update, previous = updates.get(kind), before.get(kind)
        if update is not None:
            after.append(_next(kind, update, previous, generation, now))
        elif previous is not None:
            after.append(previous)
    return after


def _next(kind: str, update: ConditionUpdate, previous: Condition | None, generation: int, now: float) -> Condition:
    flipped = previous is None or previous.status != update.status
    return Condition(
        type=kind,
        status=update.status,
        reason=update.finding.reason.value,
        message=update.finding.message[:_LONGEST_MESSAGE],
        last_transition_time=format_time(now) if flipped or previous is None else previous.last_transition_time,
        observed_generation=generation,
    )
