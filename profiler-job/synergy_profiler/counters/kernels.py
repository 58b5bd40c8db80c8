"""Nsight Compute's figures of single kernels, and what they come to for a job (co-location thesis, section 4.2). Pure.

Reads what `ncu --csv` prints, with a row for each kernel (`--page raw`) or for each kernel and metric (`details`).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING

from synergy_profiler.counters.load import Load

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Values = dict[str, tuple[str | None, str | None]]
    """By metric its value and its unit, of one kernel."""

DURATION = "gpu__time_duration.sum"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
ACTIVITY = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed"
BANDWIDTH = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
METRICS = (DURATION, OCCUPANCY, ACTIVITY, BANDWIDTH)
_NANOSECONDS = {
    "ns": 1.0, "nsecond": 1.0, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9
}  # fmt: skip
_KEY = ("Process ID", "ID")


class KernelsError(ValueError):
    """The text is no such output; the message says what it lacks."""


@dataclass(frozen=True)
class Kernel:
    """One launch: nanoseconds, and parts from 0 to 1. `activity` is None where it was not collected."""

    duration_ns: float
    occupancy: float
    bandwidth: float
    activity: float | None = None


@dataclass(frozen=True)
class KernelSums:
    """The thesis' sums over all kernels, in percent times nanoseconds (equations 4.2 and 4.3)."""

    memory: float
    compute: float
    duration_ns: float


def read_kernels(text: str) -> list[Kernel]:
    """The kernels of an output. Raises KernelsError that names what is missing or no number."""
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        said = [line for line in lines if line.startswith("==ERROR==")]
        raise KernelsError(said[-1][len("==ERROR==") :].strip() if said else 'no line begins with "ID": use ncu --csv')
    rows = list(csv.DictReader(line for line in lines[start:] if not line.startswith("==")))
    metrics = _long(rows) if rows and "Metric Name" in rows[0] else _wide(rows)
    kernels = [_kernel(number, values) for number, values in enumerate(metrics) if values]
    if not kernels:
        raise KernelsError("no kernel was profiled")
    return kernels


def sums(kernels: Iterable[Kernel]) -> KernelSums:
    """M and C of the thesis."""
    known = list(kernels)
    return KernelSums(
        memory=sum(100 * one.bandwidth * one.duration_ns for one in known),
        compute=sum(100 * one.occupancy * one.duration_ns for one in known),
        duration_ns=sum(one.duration_ns for one in known),
    )


def load_of(kernels: Sequence[Kernel], busy: float) -> Load:
    """The job's load, if kernels ran `busy` of the time (nvidia-smi's utilisation, from 0 to 1).

    Means over the kernels, weighted by their time. Achieved occupancy is of active multiprocessors only, so the
    activity scales it. Without activity, kernels count as active on all multiprocessors: an upper bound.
    """
    whole = sum(one.duration_ns for one in kernels)
    if whole <= 0.0:
        raise KernelsError("the kernels took no time")

    def mean(values: Iterable[float]) -> float:
        weighted = sum(value * one.duration_ns for value, one in zip(values, kernels))  # noqa: B905 - Python 3.8
        return min(1.0, busy * weighted / whole)

    activity = [1.0 if one.activity is None else one.activity for one in kernels]
    occupancy = [one.occupancy * part for one, part in zip(kernels, activity)]  # noqa: B905
    return Load(mean(activity), mean(one.bandwidth for one in kernels), mean(occupancy))


def _long(rows: Sequence[Mapping[str, str]]) -> Iterable[Values]:
    found: dict[tuple[str, ...], Values] = {}
    for row in rows:
        key = tuple(row.get(name) or "" for name in _KEY)
        found.setdefault(key, {})[row.get("Metric Name") or ""] = (row.get("Metric Value"), row.get("Metric Unit"))
    return found.values()


def _wide(rows: Sequence[Mapping[str, str]]) -> Iterable[Values]:
    if not rows:
        return []
    units: Mapping[str, str] = {}
    if not rows[0].get("ID"):
        units, rows = rows[0], rows[1:]
    return [{name: (row.get(name), units.get(name)) for name in METRICS if name in row} for row in rows]


def _kernel(number: int, values: Values) -> Kernel:
    for name in (DURATION, OCCUPANCY, BANDWIDTH):
        if name not in values:
            raise KernelsError(f"kernel {number} has no {name}: collect it with --metrics {','.join(METRICS)}")
    unit = values[DURATION][1] or "ns"
    if unit not in _NANOSECONDS:
        raise KernelsError(f"kernel {number}: {DURATION} is in {unit}; use --print-units base")
    return Kernel(
        _number(number, DURATION, values) * _NANOSECONDS[unit],
        _part(number, OCCUPANCY, values),
        _part(number, BANDWIDTH, values),
        _part(number, ACTIVITY, values) if ACTIVITY in values else None,
    )


def _part(number: int, name: str, values: Values) -> float:
    return min(1.0, _number(number, name, values) / 100)


def _number(number: int, name: str, values: Values) -> float:
    text = values[name][0] or ""
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        value = -1.0
    if not 0.0 <= value < float("inf"):
        raise KernelsError(f"kernel {number}: {name} is {text!r}, not a number of 0 or more")
    return value
