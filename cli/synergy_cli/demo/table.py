"""The table the demo ends with."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from rich.table import Table

from synergy_cli.demo.observation import Observation
from synergy_cli.demo.story import Story

CLEARLY_MORE: Final = 1.2
_COLUMNS = (
    "job",
    "phase",
    "steps",
    "measured CPU points",
    "matrix corners (steps/s)",
    "demand",
    "largest CPU",
    "proportional CPU",
    "speed gained",
    "preemptions",
)


def summary(story: Story) -> Table:
    """A row per job."""
    table = Table(*_COLUMNS, title="What became of the jobs")
    for name, seen in story.observations.items():
        table.add_row(*_row(seen, story.proportional_cpu_millis(name)))
    return table


def speed_gained(seen: Observation, proportional_cpu_millis: int | None) -> float | None:
    """Measured speed with clearly more than the proportional CPU share over that at it; None if it never ran with both.

    The upper quartile of the reports represents either: what else goes on on the machine only ever slows a job down.
    """
    if proportional_cpu_millis is None:
        return None
    more = CLEARLY_MORE * proportional_cpu_millis
    at = [speed for cpu, speeds in seen.speeds.items() if cpu == proportional_cpu_millis for speed in speeds]
    above = [speed for cpu, speeds in seen.speeds.items() if cpu >= more for speed in speeds]
    return float(np.percentile(above, 75) / np.percentile(at, 75)) if at and above else None


def _row(seen: Observation, proportional: int | None) -> list[str]:
    status = seen.last.get("status") or {}
    profile, service = status.get("profile") or {}, status.get("service") or {}
    gained = speed_gained(seen, proportional)
    return [
        seen.name,
        status.get("phase", ""),
        f"{(status.get('progress') or {}).get('steps', 0)}/{seen.last['spec']['steps']}",
        ", ".join(f"{point['cpuMillis']}m" for point in sorted(profile.get("points", []), key=_cpu)) or "-",
        _corners(profile),
        ", ".join(f"{demand['cpuMillis']}m" for demand in profile.get("demand", [])) or "-",
        f"{seen.largest_cpu_millis}m" if seen.largest_cpu_millis else "-",
        "-" if proportional is None else f"{proportional}m",
        "-" if gained is None else f"{gained:.2f}x",
        str(service.get("preemptions", 0)),
    ]


def _cpu(point: Mapping[str, Any]) -> int:
    return int(point["cpuMillis"])


def _corners(profile: Mapping[str, Any]) -> str:
    if not profile.get("matrices"):
        return "-"
    matrix = profile["matrices"][0]["stepsPerSecond"]
    return f"{matrix[0][0]:.2f} .. {matrix[-1][-1]:.2f}"
