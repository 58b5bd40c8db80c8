"""What a job does to a GPU while it has it alone."""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

MIB = 1 << 20
"""Bytes of one MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Averages over the job's training alone on a GPU of one type."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    compute: Annotated[float, Field(ge=0, le=1)]
    """By counters, the active part of the multiprocessors' cycles (DCGM's SM activity). Else NVML's utilisation: the
    part of the time in which any kernel runs, which is never less."""
    bandwidth: Annotated[float, Field(ge=0, le=1)]
    """By counters, the active part of the memory interface's cycles. Else the part of the time in which any memory is
    read or written, which is never less."""
    memory_bytes: Annotated[int, Field(ge=0)] = 0
    """GPU memory it needs."""
    model: str = ""
    """Name of the model that it trains: jobs of one model behave alike."""
    configuration: str = ""
    """What else describes its GPU behaviour: data, batch size, precision."""
    counters: bool = False
    """`compute` and `bandwidth` come from GPU counters; otherwise they are utilisation, an upper bound."""
    utilization: Annotated[float, Field(ge=0, le=1)] | None = None
    """With counters: NVML's utilisation beside them, where it is known."""
    memory_utilization: Annotated[float, Field(ge=0, le=1)] | None = None
    """With counters: NVML's memory utilisation beside them, where it is known."""

    def seen_by(self, *, counters: bool) -> "Usage":
        """The usage for a predictor that was fitted to counters, or to utilisation.

        A predictor fitted to utilisation gets utilisation, if it is known beside the counters. One fitted to counters
        gets counters; if only utilisation is known it gets that, and predicts a heavier job than it is.
        """
        if counters or not self.counters or self.utilization is None:
            return self
        bandwidth = self.bandwidth if self.memory_utilization is None else self.memory_utilization
        return replace(self, compute=self.utilization, bandwidth=bandwidth, counters=False)


def together(usages: tuple[Usage, ...]) -> tuple[float, float]:
    """Sums of compute and of bandwidth: what the thesis' predictors go by."""
    return sum(usage.compute for usage in usages), sum(usage.bandwidth for usage in usages)
