"""What a job does to a GPU while it has it alone."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

MIB = 1 << 20
"""Bytes of one MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Averages over the job's training alone on a GPU of one type."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    compute: Annotated[float, Field(ge=0, le=1)]
    """Part of the time in which the GPU computes (NVML's GPU utilisation, DCGM's SM activity), or its occupancy."""
    bandwidth: Annotated[float, Field(ge=0, le=1)]
    """Part of the memory bandwidth in use."""
    memory_bytes: Annotated[int, Field(ge=0)] = 0
    """GPU memory it needs."""
    model: str = ""
    """Name of the model that it trains: jobs of one model behave alike."""
    configuration: str = ""
    """What else describes its GPU behaviour: data, batch size, precision."""


def together(usages: tuple[Usage, ...]) -> tuple[float, float]:
    """Sums of compute and of bandwidth: what the thesis' predictors go by."""
    return sum(usage.compute for usage in usages), sum(usage.bandwidth for usage in usages)
