"""What a job holds of the cluster, and what sharing a GPU did to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from synergy_core.model.snapshot.limits import STRICT, Count, Name, Positive, Rate
from synergy_core.model.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShare:
    """What one node gives a job."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    node: Name
    gpus: Positive
    cpu_millis: Count
    memory_bytes: Count
    further: Mapping[str, Count] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """A job's place: its share of each node, sorted by node. A speed of 0 means that the speed is not known."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    job: Name
    gpu_type: Name
    workers: Annotated[tuple[NodeShare, ...], Field(min_length=1)]
    steps_per_s: Rate = 0.0
    proportional_steps_per_s: Rate = 0.0
    """Speed the job would have at the GPU-proportional share on the same nodes."""
    estimated: bool = False
    """Whether these speeds are estimated from other jobs: it was never measured on this GPU type."""
    spread: bool = False
    """Under a placement-sensitive policy: it is on more nodes than the fewest that could hold it.
    The speeds are those on the fewest in any case."""
    shares_gpu_with: Name | tuple[Name, ...] | None = None
    """The job that has the same GPU; a list where there are more."""
    delta_by_fractions: bool = False
    """In co-location mode `thesis`: an iteration time was not known, and delta was taken from the fractions alone."""

    @property
    def partners(self) -> tuple[str, ...]:
        """The jobs that have the same GPU, sorted."""
        others = self.shares_gpu_with
        return () if others is None else (others,) if isinstance(others, str) else others


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What became of a job while it shared a GPU: its measured speed over what it would have had alone."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    gpu_type: Name
    partners: Annotated[tuple[Name, ...], Field(min_length=1)]
    """Sorted."""
    usages: tuple[Usage, ...] = ()
    """Of the partners, in their order: with them it corrects predictions for other partners too."""
    fraction: Annotated[float, Field(gt=0, le=4)]
    at_s: float
    """When it was measured, on the clock of `now`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BesideReference:
    """What profile runs measured of the job and a reference job on one GPU."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    gpu_type: Name
    usage: Usage
    """Of the reference; it names the model."""
    kept: Annotated[float, Field(ge=0, le=4)]
    """What the job kept of its best speed alone."""
    reference_kept: Annotated[float, Field(ge=0, le=4)]
    """What the reference kept of its own."""
