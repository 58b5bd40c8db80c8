"""Figure 15: what the length of a round does to average JCT, and rounds beside the ideal that they approximate."""

from synergy_simulator.engine.fluid import fluid_jcts
from synergy_simulator.grid import Case
from synergy_simulator.report.chart import Chart, Line
from synergy_simulator.reproductions.common import HOUR, Findings, Inputs, avg_h, mean
from synergy_simulator.reproductions.gavel.common import GAVEL_LAS, TRACE_NOTE, GavelInputs, cluster, options
from synergy_simulator.workloads.gavel_mix import SINGLE

ROUNDS_S = (360.0, 720.0, 1440.0, 2880.0)
MOVE_S = 5.0
"""To load and save a checkpoint (section 7.5: less than 5 s)."""


def fig15(inputs: Inputs) -> Findings:
    """LAS that knows the types, jobs of one GPU."""
    gavel = GavelInputs.of(inputs)
    gpus, jobs, measure, load = (4, 40, (5, 15), 0.5) if inputs.quick else (12, 1000, (300, 600), 1.6)
    lengths = ROUNDS_S[2:] if inputs.quick else ROUNDS_S
    workload = gavel.workload(gavel.drawn(jobs, jobs_per_hour=load, gpu_mix=SINGLE), cluster(gpus))
    cases = [
        Case(f"{length / 60:g} min", workload, options(GAVEL_LAS, measure=measure, round_s=length, **cost))
        for length in lengths
        for cost in ({}, {"preemption_overhead_s": MOVE_S})
    ]
    summaries = inputs.run(cases)
    free, paid = (dict(zip(lengths, summaries[first::2], strict=True)) for first in (0, 1))
    ideal = mean(fluid_jcts(workload, GAVEL_LAS.policy, measure=measure)) / HOUR
    rows = [("ideal", f"{ideal:.2f}", "", "1")]
    rows += [
        (
            f"{length / 60:g} minutes",
            f"{avg_h(free[length]):.2f}",
            f"{avg_h(paid[length]):.2f}",
            f"{avg_h(free[length]) / ideal:.3f}",
        )
        for length in lengths
    ]
    differs = [
        gavel.speeds_note,
        TRACE_NOTE,
        f"{gpus} GPUs of each type, {load:g} jobs/h, jobs {measure[0]} to {measure[1]} are measured.",
        "The paper says in words that shorter rounds are nearer the ideal, and six minutes almost as good as it.",
    ]
    line = Line("rounds", [(length / 60, avg_h(free[length])) for length in lengths])
    moving = Line(f"{MOVE_S:g} s for each move", [(length / 60, avg_h(paid[length])) for length in lengths])
    flat = Line("ideal", [(length / 60, ideal) for length in lengths])
    title = "Gavel, figure 15: length of a round, and the ideal"
    chart = Chart([line, moving, flat], title=title, x="minutes", y="average JCT, hours")
    header = ("rounds", "average JCT, h", f"with {MOVE_S:g} s for each move", "beside the ideal")
    figures = {f"over_ideal_at_{length:g}s": avg_h(free[length]) / ideal for length in lengths}
    return Findings(title, header, rows, differs, [chart], figures)
