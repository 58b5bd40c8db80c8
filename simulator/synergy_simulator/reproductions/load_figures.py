"""Figures 7, 8 and 9: average JCT of LAS, SRTF and FIFO over load, and its distribution at one load."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synergy_simulator.generator import PHILLY, SINGLE, Split
from synergy_simulator.report.summary import Summary
from synergy_simulator.reproductions.common import HOUR, LONG_S, Findings, Inputs, avg_h
from synergy_simulator.reproductions.sweeps import Sweep, cdf_chart, jct_chart, scale_notes, scale_of


@dataclass(frozen=True, slots=True)
class _Paper:
    """A figure of the paper. Times in hours."""

    title: str
    policy: str
    single: bool
    at_load: float
    says: str


def fig7(inputs: Inputs) -> Findings:
    """LAS, jobs of up to 16 GPUs."""
    says = "tune up to 1.6x better; 95th percentile of long jobs 2x better at load 4"
    return _figure(inputs, _Paper("Figure 7: LAS, multi-GPU", "las", False, 4.0, says))


def fig8(inputs: Inputs) -> Findings:
    """SRTF, jobs of up to 16 GPUs."""
    return _figure(inputs, _Paper("Figure 8: SRTF, multi-GPU", "srtf", False, 5.5, "tune up to 1.6x better"))


def fig9(inputs: Inputs) -> Findings:
    """FIFO, jobs of one GPU."""
    says = "81 h proportional, 22 h tune (3.4x to 3.7x), 20 h opt at 9 jobs/h"
    return _figure(inputs, _Paper("Figure 9: FIFO, single-GPU", "fifo", True, 9.0, says))


def _figure(inputs: Inputs, paper: _Paper) -> Findings:
    mechanisms = ("proportional", "tune")
    sweep = Sweep(
        policy=paper.policy,
        mechanisms=mechanisms,
        loads=_loads(paper, quick=inputs.quick),
        split=Split(20, 70, 10),
        gpu_mix=SINGLE if paper.single else PHILLY,
        scale=scale_of(inputs),
    )
    found = sweep.grouped(inputs.run(sweep.cases(inputs)))
    rows = [_row(load, by["proportional"], by["tune"], paper) for load, by in found.items()]
    at = found[paper.at_load]
    charts = [jct_chart(paper.title, found, mechanisms)]
    for name, part in (("short", _short), ("long", _long)):
        jcts = {mechanism: part(at[mechanism].jcts) for mechanism in mechanisms}
        if all(jcts.values()):
            charts.append(cdf_chart(f"{name} jobs at {paper.at_load:g} jobs/h", jcts))
    tail = _tail(at["proportional"]) / max(1e-9, _tail(at["tune"]))
    differs = [
        inputs.profiles_note,
        "Trace: drawn anew as section 5.1 says; the paper's own traces are not published with it.",
        *scale_notes(scale_of(inputs)),
        f"95th percentile of jobs longer than 4 h at {paper.at_load:g} jobs/h: {tail:.2f}x better with tune.",
    ]
    return Findings(
        paper.title,
        ("jobs/h", "proportional, h", "tune, h", "gain", "waiting, h", "GPUs in use", "the paper"),
        rows,
        differs,
        charts,
        {f"gain_at_{load:g}": avg_h(by["proportional"]) / avg_h(by["tune"]) for load, by in found.items()},
    )


def _loads(paper: _Paper, *, quick: bool) -> Sequence[float]:
    if quick:
        return (paper.at_load,)
    return (6.0, 7.0, 8.0, 9.0) if paper.single else tuple(sorted({4.0, 5.0, 5.5, 6.0, paper.at_load}))


def _row(load: float, usual: Summary, tuned: Summary, paper: _Paper) -> tuple[str, ...]:
    waiting = f"{usual.metrics.avg_queue_s / HOUR:.1f} / {tuned.metrics.avg_queue_s / HOUR:.1f}"
    in_use = f"{usual.metrics.gpu_utilization:.0%} / {tuned.metrics.gpu_utilization:.0%}"
    gain = f"{avg_h(usual) / avg_h(tuned):.2f}x"
    says = paper.says if load == paper.at_load else ""
    return f"{load:g}", f"{avg_h(usual):.1f}", f"{avg_h(tuned):.1f}", gain, waiting, in_use, says


def _short(jcts: Sequence[float]) -> list[float]:
    return [jct for jct in jcts if jct < LONG_S]


def _long(jcts: Sequence[float]) -> list[float]:
    return [jct for jct in jcts if jct >= LONG_S]


def _tail(summary: Summary) -> float:
    long = _long(summary.jcts)
    return float(np.percentile(long, 95)) if long else 0.0
