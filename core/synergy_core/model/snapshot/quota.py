"""What jobs may hold together, and what each counts against it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic import ConfigDict

from synergy_core.model.snapshot.limits import STRICT, Count, Name, check_kind, unique


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaLimit:
    """One resource of a quota."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    resource: Name
    """What the admin calls it, such as `requests.nvidia.com/gpu`."""
    counts: Name
    """What of a job's share of its nodes it counts: `cpu_millis`, `memory_bytes`, or GPUs of the nodes that are
    `counted_as` this; `objects` counts nothing of it."""
    hard: Count
    used: Count = 0
    """Held by others than the snapshot's running jobs."""

    def __post_init__(self) -> None:
        check_kind(self.counts, "counts", "cpu_millis", "memory_bytes", "objects")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What the jobs that draw on it may hold together (a ResourceQuota of their namespace)."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: Name
    limits: tuple[QuotaLimit, ...]

    def __post_init__(self) -> None:
        unique("limits", [limit.resource for limit in self.limits], "resource")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaDraw:
    """A quota that a job counts against while it runs, and by how much beside its share of its nodes."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    quota: Name
    once: Mapping[Name, Count] = field(default_factory=dict, hash=False)
    """By resource, what its run needs once, such as a Service."""
    per_pod: Mapping[Name, Count] = field(default_factory=dict, hash=False)
    """By resource, what each of its pods needs beside its share: itself, and limits above requests."""


def merged_draws(draws: Iterable[QuotaDraw]) -> tuple[QuotaDraw, ...]:
    """What several jobs on one GPU draw together: their pods and objects add up, their share is one."""
    found: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
    for draw in draws:
        sums = found.setdefault(draw.quota, ({}, {}))
        for total, more in zip(sums, (draw.once, draw.per_pod), strict=True):
            for resource, amount in more.items():
                total[resource] = total.get(resource, 0) + amount
    return tuple(QuotaDraw(quota=name, once=once, per_pod=per_pod) for name, (once, per_pod) in found.items())
