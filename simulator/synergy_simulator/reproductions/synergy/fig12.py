"""Figure 12: FIFO on servers with 3, 4, 5 and 6 CPUs for each GPU."""

from synergy_simulator.report.chart import Chart, Line
from synergy_simulator.reproductions.common import Findings, Inputs, avg_h
from synergy_simulator.reproductions.sweeps import W1, Sweep, scale_notes, scale_of, trace_note
from synergy_simulator.workloads.generator import SINGLE

PAPER = {3: 3.4, 4: 3.0, 5: 2.2, 6: 1.8}
"""Gain of tune at 9 jobs/h."""
LOAD = 9.0


def fig12(inputs: Inputs) -> Findings:
    """The gain shrinks as the proportional share grows."""
    sweeps = {
        ratio: Sweep(
            policy="fifo",
            mechanisms=("proportional", "tune"),
            loads=(LOAD,),
            split=W1,
            gpu_mix=SINGLE,
            cpus_per_gpu=ratio,
            scale=scale_of(inputs),
        )
        for ratio in PAPER
    }
    cases = [case for ratio, sweep in sweeps.items() for case in sweep.cases(inputs, f"ratio {ratio}, ")]
    summaries = inputs.run(cases)
    usual, tuned = summaries[::2], summaries[1::2]
    gains = {ratio: avg_h(u) / avg_h(t) for ratio, u, t in zip(PAPER, usual, tuned, strict=True)}
    rows = [
        (str(ratio), f"{avg_h(u):.1f}", f"{avg_h(t):.1f}", f"{gains[ratio]:.2f}x", f"{PAPER[ratio]:g}x")
        for ratio, u, t in zip(PAPER, usual, tuned, strict=True)
    ]
    differs = [
        inputs.profiles_note,
        trace_note(inputs, single=True),
        "Durations are those at the proportional share of each cluster: all ratios have the same load in GPUs.",
        *scale_notes(scale_of(inputs)),
    ]
    lines = [
        Line("ours", [(float(ratio), gain) for ratio, gain in gains.items()]),
        Line("the paper", [(float(ratio), gain) for ratio, gain in PAPER.items()]),
    ]
    chart = Chart(lines, title="Gain of tune at 9 jobs/h", x="CPUs per GPU", y="times")
    header = ("CPUs per GPU", "proportional, h", "tune, h", "gain", "the paper")
    figures = {f"gain_at_ratio_{ratio}": gain for ratio, gain in gains.items()}
    return Findings("Figure 12: CPUs for each GPU", header, rows, differs, [chart], figures)
