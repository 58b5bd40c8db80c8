"""Figures 7, 8 and 9: average JCT of LAS, SRTF and FIFO over load, and its distribution at one load."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synergy_simulator.report.summary import Summary
from synergy_simulator.reproductions.common import HOUR, LONG_S, Findings, Inputs, avg_h
from synergy_simulator.reproductions.sweeps import W1, Sweep, cdf_chart, jct_chart, scale_notes, scale_of, trace_note
from synergy_simulator.workloads.generator import PHILLY, SINGLE


@dataclass(frozen=True, slots=True)
class _Paper:
    """A figure of the paper. Times in hours."""

    title: str
    policy: str
    single: bool
    says: str


def fig7(inputs: Inputs) -> Findings:
    """LAS, jobs of up to 16 GPUs."""
    says = "tune up to 1.6x better; 95th percentile of long jobs 2x better at load 4"
    return _figure(inputs, _Paper("Figure 7: LAS, multi-GPU", "las", False, says))


def fig8(inputs: Inputs) -> Findings:
    """SRTF, jobs of up to 16 GPUs."""
    return _figure(inputs, _Paper("Figure 8: SRTF, multi-GPU", "srtf", False, "tune up to 1.6x better"))


def fig9(inputs: Inputs) -> Findings:
    """FIFO, jobs of one GPU."""
    says = "81 h proportional, 22 h tune (3.4x to 3.7x), 20 h opt at 9 jobs/h"
    return _figure(inputs, _Paper("Figure 9: FIFO, single-GPU", "fifo", True, says))


def _figure(inputs: Inputs, paper: _Paper) -> Findings:
    mechanisms = ("proportional", "tune")
    sweep = Sweep(
        policy=paper.policy,
        mechanisms=mechanisms,
        loads=_loads(paper, quick=inputs.quick),
        split=W1,
        gpu_mix=SINGLE if paper.single else PHILLY,
        scale=scale_of(inputs),
    )
    found = sweep.grouped(inputs.run(sweep.cases(inputs)))
    highest = max(found)
    rows = [
        (*_row(load, sweep.wanted(inputs, load), by["proportional"], by["tune"]), paper.says if load == highest else "")
        for load, by in found.items()
    ]
    at = found[highest]
    charts = [jct_chart(paper.title, found, mechanisms)]
    for name, part in (("short", _short), ("long", _long)):
        jcts = {mechanism: part(at[mechanism].jcts) for mechanism in mechanisms}
        if all(jcts.values()):
            charts.append(cdf_chart(f"Completion times of {name} jobs at {highest:g} jobs/h", jcts))
    tail = _tail(at["proportional"]) / max(1e-9, _tail(at["tune"]))
    differs = [
        inputs.profiles_note,
        trace_note(inputs, single=paper.single),
        *scale_notes(scale_of(inputs)),
        f"95th percentile of jobs longer than 4 h at {highest:g} jobs/h: {tail:.2f}x better with tune.",
    ]
    return Findings(
        paper.title,
        ("jobs/h", "GPUs wanted", "proportional, h", "tune, h", "gain", "waiting, h", "GPUs in use", "the paper"),
        rows,
        differs,
        charts,
        {f"gain_at_{load:g}": avg_h(by["proportional"]) / avg_h(by["tune"]) for load, by in found.items()},
    )


def _loads(paper: _Paper, *, quick: bool) -> Sequence[float]:
    """The highest is the first that overfills the cluster at the proportional share."""
    loads = (6.0, 7.0, 8.0, 9.0) if paper.single else (4.0, 5.5, 7.5)
    return loads[-1:] if quick else loads


def _row(load: float, wanted: float, usual: Summary, tuned: Summary) -> tuple[str, ...]:
    waiting = f"{usual.metrics.avg_queue_s / HOUR:.1f} / {tuned.metrics.avg_queue_s / HOUR:.1f}"
    in_use = f"{usual.metrics.gpu_utilization:.0%} / {tuned.metrics.gpu_utilization:.0%}"
    gain = f"{avg_h(usual) / avg_h(tuned):.2f}x"
    return f"{load:g}", f"{wanted:.0%}", f"{avg_h(usual):.1f}", f"{avg_h(tuned):.1f}", gain, waiting, in_use


def _short(jcts: Sequence[float]) -> list[float]:
    return [jct for jct in jcts if jct < LONG_S]


def _long(jcts: Sequence[float]) -> list[float]:
    return [jct for jct in jcts if jct >= LONG_S]


def _tail(summary: Summary) -> float:
    long = _long(summary.jcts)
    return float(np.percentile(long, 95)) if long else 0.0
