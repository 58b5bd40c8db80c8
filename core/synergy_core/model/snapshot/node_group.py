"""A group of like nodes that can grow, as the planner reads it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic import ConfigDict

from synergy_core.model.snapshot.limits import (
    STRICT,
    Count,
    Moment,
    Name,
    Positive,
    Price,
    Seconds,
    check_kind,
    unique,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Nodes that are asked for and not there yet."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: Name
    nodes: Positive
    """Those of them that are still missing."""
    at: Moment
    """When they are expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """Nodes of one shape, of which there can be more. Jobs whose `nodes` are named may use new ones only if they name
    the group as well."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: Name
    gpu_type: Name
    gpus: Positive
    cpu_millis: Positive
    memory_bytes: Positive
    further: Mapping[str, Count] = field(default_factory=dict, hash=False)
    gpu_memory_bytes: Count = 0
    price_per_hour: Price = 0.0
    """Of one GPU; 0: not known, and the group does not grow under a bound on the price."""
    counted_as: Name = "gpus"
    """As a node's: which limits of a quota count its GPUs."""
    nodes: Count = 0
    """Those that are there, whether they take jobs or not."""
    max_nodes: Count
    waiting_s: Seconds = 0.0
    """A job must have waited so long before nodes are asked for it."""
    not_before: Moment | None = None
    """Until then nothing is asked for, since a request has failed; null: at once."""
    promises: tuple[Promise, ...] = ()
    """The oldest first."""

    def __post_init__(self) -> None:
        check_kind(self.counted_as, "counted_as")
        unique("promises", [promise.name for promise in self.promises])
