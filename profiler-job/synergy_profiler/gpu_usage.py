"""The GPU usage of the command while it is measured, from NVML through nvidia-smi.

NVIDIA's container toolkit puts nvidia-smi into every container with a GPU. It samples the part of the time in which a
kernel ran and in which device memory was read or written; on an exclusive GPU these are the job's own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from synergy_job.environment import visible_uuids

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    Source = Literal["DCGM", "NVML-GPM", "Nsight", "Utilization"]

PROGRAM = "nvidia-smi"
EVERY_MS = 500
MIB = 1 << 20
_FIELDS = "uuid,utilization.gpu,utilization.memory,memory.used"
_STOP_S = 2.0


@dataclass(frozen=True)
class GpuSample:
    """One GPU at one moment (CLOCK_MONOTONIC): parts of the time, and bytes."""

    at: float
    uuid: str
    compute: float
    bandwidth: float
    memory_bytes: int


@dataclass(frozen=True)
class GpuUsage:
    """Means over the GPUs and the time; of memory the most that one GPU had in use.

    By `Utilization`, compute and bandwidth are the parts of the time in which any kernel ran, and in which any memory
    was read or written: upper bounds of what counters tell. By counters (`synergy_profiler.counters`), utilisation
    stays beside them.
    """

    compute: float
    bandwidth: float
    memory_bytes: int
    source: Source = "Utilization"
    occupancy: float | None = None
    utilization: float | None = None
    memory_utilization: float | None = None
    problem: str = ""
    """Why no counters tell, where they were asked for."""


class GpuSampler:
    """Samples the GPUs of this container from its start until `stop`; where there is no nvidia-smi, none come."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        environ = os.environ if environ is None else environ
        self._own = frozenset(visible_uuids(environ.get("NVIDIA_VISIBLE_DEVICES", "")))
        self._samples: list[GpuSample] = []
        self._process: subprocess.Popen[str] | None = None
        program = shutil.which(PROGRAM, path=environ.get("PATH"))
        if program is None:
            return
        command = [program, f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits", f"--loop-ms={EVERY_MS}"]
        try:
            self._process = subprocess.Popen(
                command,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        except OSError:
            return
        self._reader = threading.Thread(target=self._read, name="synergy-gpu-usage", daemon=True)
        self._reader.start()

    def stop(self) -> None:
        """End the sampling; what was sampled stays."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(_STOP_S)

    def usage(self, begin: float, end: float) -> GpuUsage | None:
        """What was used from `begin` to `end` (CLOCK_MONOTONIC, seconds); None where nothing was sampled then.

        A sample covers the time before it, so one that comes as late as the next was due counts too.
        """
        within = [one for one in list(self._samples) if begin <= one.at <= end + EVERY_MS / 1000]
        if not within:
            return None
        count = len(within)
        return GpuUsage(
            sum(one.compute for one in within) / count,
            sum(one.bandwidth for one in within) / count,
            max(one.memory_bytes for one in within),
        )

    def _read(self) -> None:
        process = self._process
        if process is None or process.stdout is None:
            return
        with process.stdout as lines:
            for line in lines:
                sample = parse_sample(line, time.monotonic())
                if sample is not None and (not self._own or sample.uuid in self._own):
                    self._samples.append(sample)


def parse_sample(line: str, at: float) -> GpuSample | None:
    """A line of nvidia-smi; None if there are no figures, as of a GPU that does not have them."""
    parts = [part.strip() for part in line.split(",")]
    try:
        uuid, compute, bandwidth, memory = parts
        figures = float(compute) / 100, float(bandwidth) / 100, float(memory)
    except ValueError:
        return None
    if not (0 <= figures[0] <= 1 and 0 <= figures[1] <= 1 and 0 <= figures[2] < float("inf")):
        return None
    return GpuSample(at, uuid, figures[0], figures[1], int(figures[2] * MIB))
