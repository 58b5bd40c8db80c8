"""Kernel profiles from Nsight Compute's CSV export (`ncu --csv`), of both pages.

`--page details` (the default) has a line for each metric of each kernel: `ID`, .., `Metric Name`, `Metric Unit`,
`Metric Value`. `--page raw` has a line for each kernel, a column for each metric, and the units in the second line.
Lines that ncu or the program writes before the header (`==PROF== ..`) are passed over.
"""

import csv
from collections.abc import Mapping

from synergy_core.colocation.importers.kernels import Kernel
from synergy_core.model.snapshot import FieldError

_SECONDS = {
    "second": 1.0, "s": 1.0, "msecond": 1e-3, "ms": 1e-3, "usecond": 1e-6, "us": 1e-6, "nsecond": 1e-9, "ns": 1e-9,
}  # fmt: skip

_DURATION = ("gpu__time_duration.sum", "Duration")
_BANDWIDTH = ("dram__throughput.avg.pct_of_peak_sustained_elapsed", "DRAM Throughput", "Memory Throughput")
_OCCUPANCY = ("sm__warps_active.avg.pct_of_peak_sustained_active", "Achieved Occupancy")

_Metrics = Mapping[str, tuple[str, str, int]]
"""(value, unit, line) by name; the metric's line is where an error points."""


def read_kernels(text: str) -> list[Kernel]:
    """The kernels of an export, in the order of their launches.

    Raises FieldError naming line and metric where one is missing, in another unit, or no number.
    """
    lines = text.splitlines()
    start = next((index for index, line in enumerate(lines) if line.lstrip('"').startswith("ID")), None)
    if start is None:
        raise FieldError("ID", "no such column: this is no CSV export of Nsight Compute; make it with ncu --csv")
    header, *rows = csv.reader(lines[start:])
    numbered = [(start + 2 + index, row) for index, row in enumerate(rows) if any(row)]
    for line, row in numbered:
        if len(row) != len(header):
            raise FieldError(f"line {line}", f"has {len(row)} values for {len(header)} columns; export it anew")
    kernels = _details(header, numbered) if "Metric Name" in header else _raw(header, numbered)
    if not kernels:
        raise FieldError("ID", "there is no kernel; profile some iterations of the training")
    return [_kernel(line, metrics) for line, metrics in kernels]


def _details(header: list[str], rows: list[tuple[int, list[str]]]) -> list[tuple[int, _Metrics]]:
    places = [header.index(name) for name in ("ID", "Metric Name", "Metric Unit", "Metric Value")]
    found: dict[str, tuple[int, dict[str, tuple[str, str, int]]]] = {}
    for line, row in rows:
        kernel, name, unit, value = (row[place] for place in places)
        metrics = found.setdefault(kernel, (line, {}))[1]
        # `Memory Throughput` stands there in percent and in byte/second
        if name not in metrics or unit == "%":
            metrics[name] = (value, unit, line)
    return list(found.values())


def _raw(header: list[str], rows: list[tuple[int, list[str]]]) -> list[tuple[int, _Metrics]]:
    if not rows:
        return []
    units = rows[0][1]
    return [
        (line, {name: (value, unit, line) for name, value, unit in zip(header, row, units, strict=True)})
        for line, row in rows[1:]
    ]


def _kernel(line: int, metrics: _Metrics) -> Kernel:
    value, unit, at, name = _metric(line, metrics, _DURATION)
    if unit not in _SECONDS:
        raise FieldError(f"line {at}, {name}", f"unit {unit!r} is no time; one of {', '.join(_SECONDS)}")
    return Kernel(value * _SECONDS[unit], _part(line, metrics, _BANDWIDTH), _part(line, metrics, _OCCUPANCY))


def _part(line: int, metrics: _Metrics, names: tuple[str, ...]) -> float:
    value, unit, at, name = _metric(line, metrics, names)
    if unit != "%" or not 0.0 <= value <= 101.0:
        raise FieldError(f"line {at}, {name}", f"must be 0 to 100 %, is {value:g} {unit}")
    return min(1.0, value / 100.0)


def _metric(line: int, metrics: _Metrics, names: tuple[str, ...]) -> tuple[float, str, int, str]:
    for name in names:
        if name in metrics:
            text, unit, at = metrics[name]
            try:
                return float(text.replace(",", "")), unit, at, name
            except ValueError:
                raise FieldError(f"line {at}, {name}", f"must be a number, is {text!r}") from None
    problem = f"is missing for the kernel; collect the section that has it, or --metrics {names[0]}"
    raise FieldError(f"line {line}, {names[-1]}", problem)
