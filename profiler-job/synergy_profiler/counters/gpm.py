"""What NVML's GPM interface tells while a command is measured (`synergy_profiler.counters.nvml` in a process)."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

from synergy_profiler.counters.load import GpuLoad, Load, mean_load, part
from synergy_profiler.counters.nvml import PROBLEM

if TYPE_CHECKING:
    from collections.abc import Mapping

EVERY_MS = 500
_STOP_S = 2.0


class GpmSampler:
    """Samples the container's GPUs until `stop`. `problem` says why nothing comes, if nothing does."""

    source: Final = "NVML-GPM"
    settle_s: Final = 0.0
    """Each sample tells of the time since the one before."""

    def __init__(self, own: frozenset[str], environ: Mapping[str, str] | None = None) -> None:
        self._own = own
        self._samples: list[GpuLoad] = []
        self.problem = "NVML's GPM interface told nothing while the command was measured"
        command = [sys.executable, "-m", "synergy_profiler.counters.nvml", "--every-ms", str(EVERY_MS)]
        self._process = subprocess.Popen(
            command,
            env=dict(os.environ if environ is None else environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, name="synergy-gpm", daemon=True)
        self._reader.start()

    def load(self, begin: float, end: float) -> Load | None:
        """The load from `begin` to `end` (CLOCK_MONOTONIC, seconds); None where nothing was sampled then."""
        since = begin + EVERY_MS / 1000
        until = end + EVERY_MS / 1000
        return mean_load([one.load for one in list(self._samples) if since <= one.at <= until])

    def stop(self) -> None:
        """End the sampling; what was sampled stays."""
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(_STOP_S)

    def _read(self) -> None:
        if self._process.stdout is None:
            return
        with self._process.stdout as lines:
            for line in lines:
                if line.startswith(PROBLEM):
                    self.problem = line[len(PROBLEM) :].strip()
                    continue
                sample = parse_line(line, time.monotonic())
                if sample is not None and (not self._own or sample.uuid in self._own):
                    self._samples.append(sample)


def parse_line(line: str, at: float) -> GpuLoad | None:
    """A line of `synergy_profiler.counters.nvml`; None where it has no figures."""
    uuid, *rest = [piece.strip() for piece in line.split(",")]
    try:
        parts = [part(float(piece) / 100) for piece in rest]
    except ValueError:
        return None
    if len(parts) != 3:
        return None
    compute, occupancy, bandwidth = parts
    if compute is None or bandwidth is None:
        return None
    return GpuLoad(at, uuid, Load(compute, bandwidth, occupancy))
