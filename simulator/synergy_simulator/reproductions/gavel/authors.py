"""Beside the Gavel authors' own simulator: their traces, speeds and policies, and what theirs said of them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from synergy_core.model.config import ColocationMode
from synergy_simulator.grid import Case
from synergy_simulator.inputs.clusters import Cluster, shared
from synergy_simulator.inputs.errors import InputError, InputLocation
from synergy_simulator.reproductions.common import HOUR, Findings, Inputs
from synergy_simulator.reproductions.gavel.common import GavelInputs, Scheduler, cluster, options


@dataclass(frozen=True, slots=True)
class _Trace:
    """One of their traces, and where it ran."""

    file: str
    title: str
    gpus: Mapping[str, int]
    physical: bool = False
    measure: tuple[int, int] | None = None
    long: bool = False
    """More than a minute for all of its rows."""


_TRACES: Final[Mapping[str, _Trace]] = {
    "phys_cont": _Trace(
        "phys_max_min_fairness.trace", "physical, arriving", {"V100": 8, "P100": 16, "K80": 24}, physical=True
    ),
    "phys_static": _Trace(
        "phys_minimize_makespan.trace", "physical, static", {"V100": 8, "P100": 16, "K80": 24}, physical=True
    ),
    "static120": _Trace("static_multi_120_s0.csv", "120 jobs at once", {"V100": 12, "P100": 12, "K80": 12}),
    "cs2000": _Trace(
        "cont_single_lam2000_s0.csv",
        "1,200 arriving, one GPU",
        {"V100": 12, "P100": 12, "K80": 12},
        measure=(100, 400),
        long=True,
    ),
}


@dataclass(frozen=True, slots=True)
class _Row:
    """A run of theirs, and the same of ours."""

    trace: str
    theirs: str
    """Their name of the policy: `_perf` sees the GPU types, `_packed` shares GPUs as well."""
    policy: str

    @property
    def aware(self) -> bool:
        """Whether it sees the GPU types: AlloX does, and Gandiva sees where a pair that it tries gains."""
        return self.theirs.endswith(("_perf", "_packed")) or self.theirs in ("allox", "gandiva")

    @property
    def colocation(self) -> ColocationMode:
        """Whether it shares GPUs."""
        return "gavel" if self.theirs.endswith("_packed") or self.theirs == "gandiva" else "none"


_POLICIES: Final = {
    "max_min_fairness": "max-min-fairness",
    "max_min_fairness_water_filling": "max-min-fairness-water-filling",
    "finish_time_fairness": "finish-time-fairness",
    "min_total_duration": "makespan",
    "fifo": "gavel-fifo",
    "allox": "allox",
    "gandiva": "gandiva",
}
_ENDINGS: Final = ("_perf", "_packed")


def authors(inputs: Inputs) -> Findings:
    """All rows of their results that ended, with our figures beside them."""
    gavel = GavelInputs.of(inputs)
    results = gavel.folder / "results.json" if gavel.folder is not None else None
    if results is None or not results.is_file():
        raise InputError(
            InputLocation("--data", None, "gavel/results.json"), "is not there; this table is about nothing else"
        )
    found = _theirs(results)
    rows = [row for row in found if not (inputs.quick and _TRACES[row.trace].long)]
    answers = inputs.run([_case(gavel, row) for row in rows])
    table: list[tuple[str, ...]] = []
    figures: dict[str, float] = {}
    for row, answer in zip(rows, answers, strict=True):
        ours, theirs = answer.metrics, found[row]
        jct, end = ours.avg_jct_s / theirs["avg_jct_s"], ours.makespan_s / theirs["makespan_s"]
        figures |= {f"{row.trace}/{row.theirs}/avg_jct": jct, f"{row.trace}/{row.theirs}/makespan": end}
        table.append(
            (
                _TRACES[row.trace].title,
                row.theirs,
                f"{theirs['avg_jct_s'] / HOUR:.2f}",
                f"{ours.avg_jct_s / HOUR:.2f}",
                f"{jct - 1:+.1%}",
                f"{theirs['makespan_s'] / HOUR:.1f}",
                f"{ours.makespan_s / HOUR:.1f}",
                f"{end - 1:+.1%}",
                f"{theirs['sim_wall_s']:.0f}",
                f"{ours.wall_s:.0f}",
            )
        )
    header = (
        *("trace", "their policy", "JCT, theirs, h", "ours, h", "", "makespan, theirs, h", "ours, h", ""),
        *("their wall s", "ours"),
    )
    differs = [
        "Below 0 ours is shorter. Makespans of arriving jobs are of what came after the measured ones too.",
        "Theirs were measured once, on another day; wall seconds are those of whatever else the machines did.",
    ]
    if inputs.quick:
        differs.append("Quick: without the trace of 1,200 jobs.")
    return Findings("Gavel: beside the authors' own simulator", header, table, differs, (), figures)


def _case(gavel: GavelInputs, row: _Row) -> Case:
    trace = _TRACES[row.trace]
    jobs = gavel.trace(trace.file)
    if jobs is None:
        raise InputError(InputLocation("--data", None, f"gavel/{trace.file}"), "is not there; results.json is about it")
    there: Cluster = cluster(trace.gpus)
    workload = gavel.workload(jobs, there if row.colocation == "none" else shared(there), physical=trace.physical)
    one = Scheduler(row.theirs, row.policy, aware=row.aware)
    return Case(f"{row.trace}, {row.theirs}", workload, options(one, measure=trace.measure, colocation=row.colocation))


def _theirs(path: Path) -> Mapping[_Row, Mapping[str, Any]]:
    """Of each policy on each trace that we have too what ended, by ECOS where more than one solver did."""
    listed: Sequence[Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    found: dict[_Row, Mapping[str, Any]] = {}
    for one in sorted(listed, key=lambda one: str(one["solver"])):
        name = str(one["policy"])
        plain = name
        for ending in _ENDINGS:
            plain = plain.removesuffix(ending)
        if one["trace"] in _TRACES and plain in _POLICIES and one["avg_jct_s"] is not None:
            found.setdefault(_Row(one["trace"], name, _POLICIES[plain]), one)
    order = list(_TRACES)
    return dict(sorted(found.items(), key=lambda item: (order.index(item[0].trace), item[0].theirs)))
