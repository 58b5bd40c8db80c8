"""What the recorder writes to the store: facts, and its position in the watched collection."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from synergy_dashboard.facts import JobFact, ResizeFact, RunFact, Sample, UseSample

Object = dict[str, Any]
Key = tuple[str, str]
"""(namespace, name)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitNow:
    """The reason for which a job waits at a moment. It ends the wait for any other reason. An empty `reason` ends every
    wait."""

    uid: str
    at_s: float
    reason: str = ""
    message: str = ""
    position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts of one change. A change that comes twice counts once."""

    jobs: tuple[JobFact, ...] = ()
    runs: tuple[RunFact, ...] = ()
    resizes: tuple[ResizeFact, ...] = ()
    waits: tuple[WaitNow, ...] = ()
    samples: tuple[Sample, ...] = ()
    use: tuple[UseSample, ...] = ()


_MOST: Final = 2**63 - 1


def check_numbers(facts: Facts) -> None:
    """Raise ValueError for an integer that no database takes: one such object must not keep all others from being
    written."""
    for facts_of_kind in (facts.jobs, facts.runs, facts.resizes, facts.waits, facts.samples, facts.use):
        for fact in facts_of_kind:
            for one in fields(fact):
                value = getattr(fact, one.name)
                if isinstance(value, int) and not -_MOST <= value <= _MOST:
                    raise ValueError(f"{one.name}: {value} is too large to be recorded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The recorder's position: the collection's version, and the last seen state of each changed object. `version` is
    empty if the collection must be listed first. `objects` has None for a deleted object."""

    version: str
    objects: Mapping[Key, Object | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """The recorder's position at its last write."""

    version: str
    objects: dict[Key, Object]
