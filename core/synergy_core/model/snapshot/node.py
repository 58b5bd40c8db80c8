"""A node as the planner reads it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from synergy_core.model.snapshot.limits import (
    STRICT,
    Count,
    FieldError,
    Moment,
    Name,
    Positive,
    Price,
    Rate,
    check_kind,
)

_OWN_FIELDS = ("gpus", "cpu_millis", "memory_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine with GPUs of one type. `*_used` is what pods hold that are not planned here."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    name: Name
    gpu_type: Name
    gpus: Count
    cpu_millis: Count
    memory_bytes: Count
    gpus_used: Count = 0
    cpu_millis_used: Count = 0
    memory_bytes_used: Count = 0
    further: Mapping[str, Count] = field(default_factory=dict, hash=False)
    """Further resources by name, such as storage or network bandwidth; every node of a cluster names the same ones."""
    further_used: Mapping[str, Count] = field(default_factory=dict, hash=False)
    replicas: Positive = 1
    """Clients that may share one GPU."""
    gpu_memory_bytes: Count = 0
    """Of one GPU; 0: not known, and its GPUs are not shared."""
    client_memory_bytes: Count = 0
    """Of its GPUs' memory, what MPS leaves each client of a shared one; 0: all that is there."""
    client_thread_percent: Annotated[int, Field(ge=1, le=100)] = 100
    """Of its GPUs' threads, what MPS lets each client use, one that has its GPU alone too."""
    schedulable: bool = True
    """False for a cordoned node: what runs there stays, nothing new comes."""
    empty_by: Moment | None = None
    """When nothing may run there any more: it is drained, or its maintenance begins. Jobs leave at the last end of a
    round before it, and none comes that would have to leave within a round."""
    reopens_at: Moment | None = None
    """When jobs may run there again after `empty_by`; None: not known."""
    domains: tuple[Name, ...] = ()
    """What it is part of, the widest first, such as its block, rack and NVLink domain. Nodes are near each other in a
    domain if all wider ones are the same, too. A gang of several nodes goes to the narrowest that holds it."""
    domain_bytes_per_s: tuple[Rate, ...] = ()
    """Measured bandwidth of its link to other nodes of each of `domains`, in their order; 0 and what is missing: not
    known."""
    price_per_hour: Price = 0.0
    """Of one GPU, in any one currency; 0: not known."""
    devices_per_gpu: Positive = 1
    """What a quota counts for each GPU: the device plugin's devices where GPUs are shared."""
    counted_as: Name = "gpus"
    """Which limits of a quota count them (`QuotaLimit.counts`): `gpus`, `shared_gpus`, or another resource's name."""

    def __post_init__(self) -> None:
        check_kind(self.counted_as, "counted_as")
        if self.reopens_at is not None and (self.empty_by is None or self.reopens_at < self.empty_by):
            raise FieldError("reopens_at", "must not be before empty_by; give both")
        if len(self.domain_bytes_per_s) > len(self.domains):
            raise FieldError("domain_bytes_per_s", "has more entries than domains; give one for each")
        for name in (name for name in _OWN_FIELDS if name in self.further):
            raise FieldError(f"further.{name}", "has a field of its own; give it there")
        for name in self.further_used:
            if name not in self.further:
                raise FieldError(f"further_used.{name}", "is not in further; say there how much the node has")
