"""Figure 6: the real Philly trace on 512 GPUs."""

from collections.abc import Sequence

import numpy as np

from synergy_simulator.grid import Case
from synergy_simulator.inputs.clusters import homogeneous
from synergy_simulator.report.summary import Summary
from synergy_simulator.reproductions.common import (
    HOUR,
    LONG_S,
    Findings,
    Inputs,
    avg_h,
    mean,
    philly_trace,
    steady,
)
from synergy_simulator.reproductions.sweeps import W1, cdf_chart
from synergy_simulator.workloads.generator import PHILLY, with_models

PAPER = {"srtf": (30.0, 26.0), "las": (32.0, 28.0), "fifo": (71.0, 62.0)}
"""Average JCT in hours: proportional, Synergy."""
FIRST = 48_000
"""Where the subrange of the trace begins."""


def fig6(inputs: Inputs) -> Findings:
    """Average JCT under three policies; short and long jobs under SRTF; how much each job gains."""
    part = 8 if inputs.quick else 1
    count, nodes, measure = 8000 // part, 64 // part, (4000 // part, 5000 // part)
    real = philly_trace(inputs, 8000, FIRST)
    if real is None:
        trace = inputs.derived(count, W1, load=7.0 * nodes / 16, gpu_mix=PHILLY)
        source = "Trace: drawn as in section 5.1; the Philly table is not at hand (--data names its folder)."
    else:
        trace = with_models(real[::part], W1, inputs.profiles.models, seed=inputs.seed)
        source = (
            f"Trace: jobs {FIRST} to {FIRST + 8000} of the public Philly table; the paper does not give its subrange."
        )
    workload = inputs.workload(trace, homogeneous(nodes))
    cases = [
        Case(f"{policy} {mechanism}", workload, steady(measure, policy=policy, mechanism=mechanism))
        for policy in PAPER
        for mechanism in ("proportional", "tune")
    ]
    answers = inputs.run(cases)
    found = {policy: (answers[2 * i], answers[2 * i + 1]) for i, policy in enumerate(PAPER)}
    rows = [_row(policy, *found[policy]) for policy in PAPER]
    rows += _short_and_long(*found["srtf"])
    in_use = found["srtf"][0].metrics.gpu_utilization
    differs = [
        inputs.profiles_note,
        source,
        f"{nodes * 8} GPUs, {in_use:.0%} of them in use with SRTF and proportional.",
        *(["Quick: an eighth of the GPUs and of the jobs."] if inputs.quick else []),
    ]
    jcts = {"proportional": found["srtf"][0].jcts, "tune": found["srtf"][1].jcts}
    figures = {f"gain_{policy}": avg_h(usual) / avg_h(tuned) for policy, (usual, tuned) in found.items()}
    header = ("policy, jobs", "proportional, h", "tune, h", "gain", "paper's proportional", "paper's Synergy", "gain")
    return Findings(
        "Figure 6: Philly", header, rows, differs, [cdf_chart("Job completion times under SRTF", jcts)], figures
    )


def _row(policy: str, usual: Summary, tuned: Summary) -> tuple[str, ...]:
    return _cells(f"{policy}, average", avg_h(usual), avg_h(tuned), *PAPER[policy])


def _short_and_long(usual: Summary, tuned: Summary) -> list[tuple[str, ...]]:
    def part(summary: Summary, *, long: bool) -> Sequence[float]:
        return [jct / HOUR for jct in summary.jcts if (jct >= LONG_S) == long] or [0.0]

    rows = []
    for name, long, average, tail in (
        ("short", False, (2.0, 1.7), (9.0, 4.0)),
        ("long", True, (80.0, 68.0), (660.0, 641.0)),
    ):
        u, t = part(usual, long=long), part(tuned, long=long)
        rows.append(_cells(f"srtf, {name}, average", mean(u), mean(t), *average))
        rows.append(_cells(f"srtf, {name}, 99th pct", float(np.percentile(u, 99)), float(np.percentile(t, 99)), *tail))
    return rows


def _cells(name: str, usual: float, tuned: float, paper_usual: float, paper_tuned: float) -> tuple[str, ...]:
    gain = f"{usual / tuned:.2f}x" if tuned else "-"
    theirs = f"{paper_usual / paper_tuned:.2f}x"
    return name, f"{usual:.2f}", f"{tuned:.2f}", gain, f"{paper_usual:g}", f"{paper_tuned:g}", theirs
