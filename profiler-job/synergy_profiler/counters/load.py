"""What GPU counters tell of the time in which a command was measured."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from synergy_job.environment import visible_uuids

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from synergy_profiler.gpu_usage import GpuUsage, Source

LONGEST_PROBLEM = 300
_SMI_S = 10.0


@dataclass(frozen=True)
class Load:
    """Averages over the GPUs and the time, from 0 to 1.

    `compute` is the part of the multiprocessors' cycles with a warp (SM activity), `occupancy` the resident warps as
    part of the most that fit, `bandwidth` the part of the cycles in which the memory interface moved data.
    """

    compute: float
    bandwidth: float
    occupancy: float | None = None


@dataclass(frozen=True)
class GpuLoad:
    """The load of one GPU at one moment (CLOCK_MONOTONIC, seconds)."""

    at: float
    uuid: str
    load: Load


def mean_load(loads: Sequence[Load]) -> Load | None:
    """The mean; None of nothing. Loads without an occupancy do not count for it."""
    if not loads:
        return None
    known = [one.occupancy for one in loads if one.occupancy is not None]
    return Load(
        sum(one.compute for one in loads) / len(loads),
        sum(one.bandwidth for one in loads) / len(loads),
        sum(known) / len(known) if known else None,
    )


def with_load(usage: GpuUsage, source: Source, load: Load) -> GpuUsage:
    """The usage by counters; what nvidia-smi said of the same time stays beside it as utilisation."""
    return replace(
        usage,
        compute=load.compute,
        bandwidth=load.bandwidth,
        source=source,
        occupancy=load.occupancy,
        utilization=usage.compute,
        memory_utilization=usage.bandwidth,
    )


def part(value: float) -> float | None:
    """A ratio from 0 to 1, or None where the figure is none: DCGM fills blanks with numbers beyond all measure."""
    return min(1.0, value) if 0.0 <= value <= 1.01 else None


def own_gpus(environ: Mapping[str, str] | None = None) -> frozenset[str]:
    """UUIDs of this container's GPUs: as its environment names them, else as nvidia-smi does; empty if neither does."""
    environ = os.environ if environ is None else environ
    named = visible_uuids(environ.get("NVIDIA_VISIBLE_DEVICES", ""))
    program = shutil.which("nvidia-smi", path=environ.get("PATH"))
    if named or program is None:
        return frozenset(named)
    try:
        said = subprocess.run(
            [program, "--query-gpu=uuid", "--format=csv,noheader,nounits"],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SMI_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return frozenset()
    return frozenset(visible_uuids(",".join(said.stdout.split())))
