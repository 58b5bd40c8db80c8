"""What the recorder hands to the store: facts, and where it stands in the watched collection."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from synergy_dashboard.facts import JobFact, ResizeFact, RunFact, Sample, UseSample

Object = dict[str, Any]
Key = tuple[str, str]
"""(namespace, name)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitNow:
    """What a job waits for at a moment. It ends the wait for any other reason; an empty `reason` ends every wait."""

    uid: str
    at_s: float
    reason: str = ""
    message: str = ""
    position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What one change tells. A change that is told twice counts once."""

    jobs: tuple[JobFact, ...] = ()
    runs: tuple[RunFact, ...] = ()
    resizes: tuple[ResizeFact, ...] = ()
    waits: tuple[WaitNow, ...] = ()
    samples: tuple[Sample, ...] = ()
    use: tuple[UseSample, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where the recorder stands: the collection's version, and each changed object as it was seen last.

    `version` is empty where the collection has to be listed first. `objects` has None for one that went.
    """

    version: str
    objects: Mapping[Key, Object | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """Where the recorder stood when it last wrote."""

    version: str
    objects: dict[Key, Object]
