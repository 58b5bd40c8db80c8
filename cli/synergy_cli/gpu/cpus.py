"""The profile harness on this machine at every CPU count, compared with the profile search, which measures few of
them."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from synergy_core.profiling.adaptive_cpu_search import complete_curve, next_cpu_point

Report = Callable[[str], None]
_MILLIS = 1000
_PATIENCE_S = 300.0
_GRACE_S = 10.0
"""Seconds for the harness to end its command after a signal."""


class HarnessError(Exception):
    """A profile run came to nothing; the message is the harness' own."""


def pipeline_command(cpus: int, stand_in_s: float | None = None, python: str = sys.executable) -> list[str]:
    """Real training with PyTorch's DataLoader; or its data, and so many seconds for a step in a GPU's place."""
    step = [] if stand_in_s is None else [str(stand_in_s)]
    return [python, "-m", "synergy_cli.gpu.pipeline", str(cpus), *step]


def speed_with(cpus: int, command: Sequence[str], environ: Mapping[str, str], options: Sequence[str] = ()) -> float:
    """Steps per second of the command on so many of this process's CPUs, as the harness measures it.

    Raises HarnessError.
    """
    own = sorted(os.sched_getaffinity(0))[:cpus]
    with tempfile.TemporaryDirectory(prefix="kube-synergy-profile-") as folder:
        told = Path(folder) / "result.json"
        harness = [sys.executable, "-m", "synergy_profiler", *options, "--termination-log", str(told), "--", *command]
        try:
            run(harness, {**environ, "OMP_NUM_THREADS": "1"}, own)
            result = json.loads(told.read_text(encoding="ascii"))
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise HarnessError(f"with {cpus} CPUs the harness left no result: {error}") from None
    if result.get("outcome") != "measured":
        raise HarnessError(f"with {cpus} CPUs: {result.get('message')}; {str(result.get('log_tail'))[-300:]}")
    return float(result["steps_per_second"])


def run(command: Sequence[str], environ: Mapping[str, str], cpus: Sequence[int]) -> None:
    """Run it on these CPUs; if it takes too long, it and its command are stopped.

    Raises OSError, subprocess.TimeoutExpired.
    """
    process = subprocess.Popen(command, env=dict(environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        os.sched_setaffinity(process.pid, cpus)  # long before it runs anything
        process.wait(_PATIENCE_S)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def measured_cpus(
    most: int,
    environ: Mapping[str, str],
    report: Report,
    command: Callable[[int], Sequence[str]] = pipeline_command,
    options: Sequence[str] = (),
) -> dict[str, Any]:
    """The speeds at 1 to `most` CPUs, what the search predicts, and how far it is off. Raises HarnessError."""
    full = {}
    for cpus in range(1, most + 1):
        full[cpus * _MILLIS] = speed_with(cpus, command(cpus), environ, options)
        report(f"{cpus} CPUs: {full[cpus * _MILLIS]:.4g} steps/s")
    grid = sorted(full)
    points: dict[int, float] = {}
    while (point := next_cpu_point(grid, points)) is not None:
        points[point] = full[point]
    curve = dict(zip(grid, complete_curve(grid, points), strict=True))
    errors = {point: curve[point] / full[point] - 1.0 for point in grid}
    worst = max(abs(error) for error in errors.values())
    report(f"{len(points)} of {len(grid)} points tell the curve within {worst:.1%}")
    return {
        "cpu_millis": grid,
        "full_steps_per_s": [full[point] for point in grid],
        "measured_cpu_millis": sorted(points),
        "curve_steps_per_s": [curve[point] for point in grid],
        "worst_error": worst,
    }
