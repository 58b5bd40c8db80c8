"""What a command beside another one on a shared GPU tells: when its steps ended, and on which GPU. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from synergy_profiler.measurement import Sample

MOST_MARKS = 64
"""So many fit into a termination message beside everything else."""


@dataclass(frozen=True)
class Together:
    """`marks` are moments (Unix time, seconds) with the steps done by then, ascending; `gpus` the UUIDs it sees."""

    marks: tuple[tuple[float, int], ...]
    gpus: tuple[str, ...]


def together(samples: Sequence[Sample], unix_offset: float, gpus: Sequence[str]) -> Together:
    """The samples, thinned evenly with the first and the last kept. `unix_offset` is added to CLOCK_MONOTONIC."""
    count = min(len(samples), MOST_MARKS)
    picked = [samples[round(index * (len(samples) - 1) / max(1, count - 1))] for index in range(count)]
    return Together(tuple((round(one.at + unix_offset, 3), one.step) for one in picked), tuple(gpus))
