"""A job's GPU use from samples of NVML or DCGM: light, and without a profiler.

A CSV table with a line for each moment, as `nvidia-smi --query-gpu=.. --format=csv` and `dcgmi dmon` exports give it.
"""

import csv
from collections.abc import Sequence

from synergy_core.model.snapshot import FieldError
from synergy_core.model.usage import Usage

MIB = 1 << 20

_COMPUTE = (
    ("DCGM_FI_PROF_SM_ACTIVE", 1.0),
    ("sm_active", 1.0),
    ("DCGM_FI_DEV_GPU_UTIL", 100.0),
    ("utilization.gpu [%]", 100.0),
    ("gpu_util", 100.0),
)
_BANDWIDTH = (
    ("DCGM_FI_PROF_DRAM_ACTIVE", 1.0),
    ("dram_active", 1.0),
    ("DCGM_FI_DEV_MEM_COPY_UTIL", 100.0),
    ("utilization.memory [%]", 100.0),
    ("gmem_util", 100.0),
)
_MEMORY = (("DCGM_FI_DEV_FB_USED", 1.0), ("memory.used [MiB]", 1.0), ("gmem", 1.0))
"""Columns that are known, the better first, and what is the whole of each; memory in MiB."""


def read_samples(text: str) -> Usage:
    """Averages of the samples; of memory the most. Raises FieldError naming line and column."""
    lines = text.splitlines()
    header = [name.strip() for name in next(csv.reader(lines[:1]), [])]
    rows = [(index, row) for index, row in enumerate(csv.reader(lines[1:]), start=2) if any(row)]
    if not rows:
        raise FieldError("line 2", "there is no sample; sample while the job trains")
    compute = _column(header, rows, _COMPUTE, most=1.01)
    bandwidth = _column(header, rows, _BANDWIDTH, most=1.01)
    memory = _column(header, rows, _MEMORY, most=1e9)
    return Usage(
        compute=min(1.0, sum(compute) / len(rows)),
        bandwidth=min(1.0, sum(bandwidth) / len(rows)),
        memory_bytes=int(max(memory) * MIB),
    )


def _column(
    header: Sequence[str], rows: Sequence[tuple[int, list[str]]], known: Sequence[tuple[str, float]], *, most: float
) -> list[float]:
    for name, whole in known:
        if name in header:
            place = header.index(name)
            return [_value(line, row, place, name=name, whole=whole, most=most) for line, row in rows]
    raise FieldError(known[-1][0], f"column is missing; give one of {', '.join(name for name, _ in known)}")


def _value(line: int, row: list[str], place: int, *, name: str, whole: float, most: float) -> float:
    text = row[place].strip() if place < len(row) else ""
    try:
        value = float(text.removesuffix("%").removesuffix("MiB")) / whole
    except ValueError:
        raise FieldError(f"line {line}, {name}", f"must be a number, is {text!r}") from None
    if not 0.0 <= value <= most:
        raise FieldError(f"line {line}, {name}", f"must be from 0 to {most * whole:g}, is {text}")
    return value
