"""Space sharing in Gavel (section 7.3): principled pairs, Gandiva's random ones, and none, jobs of one GPU.

Average JCT at high load of fairness and FIFO, and the makespan of jobs that are all there at the start.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from synergy_core.config import ColocationMode
from synergy_simulator.grid import Case
from synergy_simulator.inputs.clusters import shared
from synergy_simulator.report.summary import Summary
from synergy_simulator.reproductions.common import HOUR, Findings, Inputs
from synergy_simulator.reproductions.gavel.common import ROUND_S, TRACE_NOTE, GavelInputs, Scheduler, cluster, options


@dataclass(frozen=True, slots=True)
class _Run:
    scheduler: Scheduler
    mode: ColocationMode
    static: bool = False


_RUNS: Mapping[str, _Run] = {
    "LAS": _Run(Scheduler("LAS", "max-min-fairness", aware=False), "none"),
    "LAS, Gandiva's packing": _Run(Scheduler("Gandiva", "gandiva"), "gavel"),
    "LAS, aware": _Run(Scheduler("Gavel", "max-min-fairness"), "none"),
    "LAS, aware, pairs": _Run(Scheduler("Gavel SS", "max-min-fairness"), "gavel"),
    "FIFO, aware": _Run(Scheduler("FIFO", "gavel-fifo"), "none"),
    "FIFO, aware, pairs": _Run(Scheduler("FIFO SS", "gavel-fifo"), "gavel"),
    "makespan, Gandiva's packing": _Run(Scheduler("Gandiva", "gandiva"), "gavel", static=True),
    "makespan, aware": _Run(Scheduler("makespan", "makespan"), "none", static=True),
    "makespan, aware, pairs": _Run(Scheduler("makespan SS", "makespan"), "gavel", static=True),
}
_GAINS = (
    ("gandiva_over_pairs", "LAS, Gandiva's packing", "LAS, aware, pairs", "2.2x"),
    ("aware_over_pairs", "LAS, aware", "LAS, aware, pairs", ""),
    ("fifo_over_pairs", "FIFO, aware", "FIFO, aware, pairs", "1.4x"),
    ("makespan_gandiva_over_pairs", "makespan, Gandiva's packing", "makespan, aware, pairs", "1.5x"),
    ("makespan_over_pairs", "makespan, aware", "makespan, aware, pairs", "1.08x"),
)
"""Name, what is better by how much, and what the paper says."""


def packing(inputs: Inputs) -> Findings:
    """All of them on the same jobs."""
    gavel = GavelInputs.of(inputs)
    gpus, jobs, measure, round_s = (3, 60, (12, 40), 20 * ROUND_S) if inputs.quick else (12, 600, (150, 400), ROUND_S)
    arriving, at_once = gavel.drawn(jobs, jobs_per_hour=5.6 * gpus / 36), gavel.drawn(10 * gpus)
    cases = [
        Case(
            name,
            gavel.workload(at_once if one.static else arriving, shared(cluster(gpus))),
            options(one.scheduler, measure=None if one.static else measure, round_s=round_s, colocation=one.mode),
        )
        for name, one in _RUNS.items()
    ]
    found = dict(zip(_RUNS, inputs.run(cases), strict=True))
    hours = {name: _hours(found[name], static=one.static) for name, one in _RUNS.items()}
    rows = [
        (name, f"{value:.1f}", f"{found[name].metrics.gpu_utilization:.0%}", "", "") for name, value in hours.items()
    ]
    gains = {name: hours[worse] / hours[better] for name, worse, better, _ in _GAINS}
    rows += [(f"{worse} / {better}", "", "", f"{gains[name]:.2f}x", paper) for name, worse, better, paper in _GAINS]
    differs = [
        gavel.speeds_note,
        TRACE_NOTE,
        f"{gpus} GPUs of each type instead of 36, and as much less load (5.6 jobs/h there); {10 * gpus} jobs at once.",
        "The paper's 1.4x of FIFO is 3.8x over 2.7x of the agnostic one; 1.5x of makespan is 1.4x and 8 % beyond.",
        "Pairs of jobs of one GPU only.",
    ]
    header = ("", "average JCT or makespan, h", "GPUs in use", "gain", "the paper")
    return Findings("Gavel: space sharing (section 7.3)", header, rows, differs, (), gains)


def _hours(summary: Summary, *, static: bool) -> float:
    return (summary.metrics.makespan_s if static else summary.metrics.avg_jct_s) / HOUR
