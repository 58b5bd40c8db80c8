"""The tables of measurements: jobs alone, and pairs of them on one GPU."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synergy_core.model.measurement import SharedMeasurement
from synergy_core.model.usage import MIB, Usage
from synergy_simulator.inputs.table import Row, Table

_KEY = ("model", "dataset", "batchsize", "amp")
_SINGLE = (*_KEY, "speed", "gpu_util", "gmem_util", "gmem")
_COUNTERS = ("sm_active", "dram_active")
_SIDES = ("1", "2")
_PAIR_KEY = tuple(name + side for side in _SIDES for name in _KEY)
_PAIR = (*_PAIR_KEY, *(name + side for side in _SIDES for name in ("gpu_num", "speed")), *_SINGLE[5:])

Singles = Mapping[tuple[str, ...], Usage]


@dataclass(frozen=True, slots=True)
class Pair:
    """A line of the table of pairs."""

    usages: tuple[Usage, Usage]
    fractions: tuple[float, float] | None
    """Speeds relative to alone; None if they are not given."""


def read_singles(path: Path, *, counters: bool = False) -> Singles:
    """Jobs alone, with `counters` by these. Raises InputError that names line and column."""
    table = Table(path)
    wanted = (*_SINGLE, *(_COUNTERS if counters else ()))
    table.require(wanted, (*_SINGLE, *_COUNTERS))
    found: dict[tuple[str, ...], Usage] = {}
    for row in table.rows():
        key = _key(row, "")
        if key in found:
            raise row.bad("model", f"{' '.join(key)} occurs twice; give each job once")
        row.number("speed", above=0.0)
        found[key] = Usage(
            model=row.text("model"),
            configuration=" ".join(key[1:]),
            memory_bytes=int(row.number("gmem", least=0.0) * MIB),
            **_load(row, counters=counters),
        )
    return found


def read_pairs(path: Path, singles: Singles, *, measured: bool) -> list[Pair]:
    """Pairs; with `measured`, each must have its speeds. Raises InputError that names line and column."""
    table = Table(path)
    table.require((*_PAIR_KEY, "speed1", "speed2") if measured else _PAIR_KEY, _PAIR)
    found = []
    for row in table.rows():
        first, second = (_single(row, side, singles) for side in _SIDES)
        has = [row.has(f"speed{side}") for side in _SIDES]
        if any(has) and not all(has):
            lacking = f"speed{has.index(False) + 1}"
            raise row.bad(lacking, "is empty, and the other job's is there; give both or none")
        fractions = None
        if measured or all(has):
            fractions = (row.number("speed1", above=0.0), row.number("speed2", above=0.0))
        found.append(Pair((first, second), fractions))
    return found


def measurements_of(pairs: Sequence[Pair]) -> list[SharedMeasurement]:
    """Those pairs that have their speeds."""
    return [SharedMeasurement(pair.usages, pair.fractions) for pair in pairs if pair.fractions is not None]


def _key(row: Row, side: str) -> tuple[str, ...]:
    model, dataset, amp = (row.text(name + side) for name in ("model", "dataset", "amp"))
    if amp not in ("0", "1"):
        raise row.bad(f"amp{side}", f"must be 0 or 1 (mixed precision), is {amp!r}")
    return model, dataset, str(row.count(f"batchsize{side}")), amp


def _single(row: Row, side: str, singles: Singles) -> Usage:
    key = _key(row, side)
    if key not in singles:
        job = f"{key[0]} on {key[1]}, batch size {key[2]}, amp {key[3]}"
        raise row.bad(f"model{side}", f"the table of single jobs has no {job}; add it there")
    return singles[key]


def _load(row: Row, *, counters: bool) -> dict[str, Any]:
    utilization = _percent(row, "gpu_util"), _percent(row, "gmem_util")
    if not counters:
        return {"compute": utilization[0], "bandwidth": utilization[1]}
    return {
        "compute": _percent(row, "sm_active"),
        "bandwidth": _percent(row, "dram_active"),
        "counters": True,
        "utilization": utilization[0],
        "memory_utilization": utilization[1],
    }


def _percent(row: Row, column: str) -> float:
    value = row.number(column, least=0.0)
    if value > 100.0:
        raise row.bad(column, f"must be at most 100 percent, is {value:g}")
    return value / 100.0
