"""Batches and traces that end: makespan, cost with and without SLOs (section 7.3), and table 3."""

import random
from collections.abc import Sequence
from dataclasses import replace

from synergy_simulator.grid import Case
from synergy_simulator.inputs.clusters import shared
from synergy_simulator.inputs.errors import InputLocation
from synergy_simulator.inputs.traces import TraceJob
from synergy_simulator.report.chart import Chart, Line
from synergy_simulator.report.summary import Summary
from synergy_simulator.reproductions.common import HOUR, Findings, Inputs, avg_h
from synergy_simulator.reproductions.gavel.common import (
    GAVEL_LAS,
    LAS,
    ROUND_S,
    TRACE_NOTE,
    GavelInputs,
    Scheduler,
    cluster,
    options,
)
from synergy_simulator.workloads.gavel_mix import MULTIPLE, steps_in

DAY = 24 * HOUR
PHYSICAL = {"V100": 8, "P100": 16, "K80": 24}
COST_DAYS = (0.5, 1.0, 2.0, 4.0, 8.0)
COST_SLOS = (1.2, 2.0, 10.0)
"""Times the duration."""


def makespan(inputs: Inputs) -> Findings:
    """All jobs at the start; the time until the last is done."""
    gavel = GavelInputs.of(inputs)
    gpus, counts = (8, (30,)) if inputs.quick else (36, (100, 300))
    round_s = 20 * ROUND_S if inputs.quick else ROUND_S
    schedulers = (
        Scheduler("FIFO without moves", "fifo", aware=False),
        Scheduler("FIFO in rounds", "gavel-fifo", aware=False),
        Scheduler("Gavel", "makespan"),
    )
    cases = []
    for count in counts:
        workload = gavel.workload(gavel.drawn(count, gpu_mix=MULTIPLE), cluster(gpus))
        cases += [Case(f"{one.label}, {count} jobs", workload, options(one, round_s=round_s)) for one in schedulers]
    answers = iter(inputs.run(cases))
    found = {count: [next(answers).metrics.makespan_s / HOUR for _ in schedulers] for count in counts}
    rows = [
        (
            str(count),
            *(f"{hours:.1f}" for hours in (stays, rounds, ours)),
            f"{stays / ours:.2f}x, {rounds / ours:.2f}x",
            "2.5x",
        )
        for count, (stays, rounds, ours) in found.items()
    ]
    lines = [
        Line(one.label, [(float(count), hours[index]) for count, hours in found.items()])
        for index, one in enumerate(schedulers)
    ]
    title = "Gavel, section 7.3: makespan"
    differs = [
        gavel.speeds_note,
        TRACE_NOTE,
        f"{gpus} GPUs of each type, jobs of up to 8 GPUs; the paper does not tell how many jobs.",
        "Nor what its FIFO does with a job on a slow type: leave it there, or move it in rounds to all types.",
    ]
    chart = Chart(lines, title=title, x="jobs", y="makespan, hours")
    figures = {f"makespan_gain_at_{count}": rounds / ours for count, (_, rounds, ours) in found.items()}
    figures |= {f"makespan_gain_over_no_moves_at_{count}": stays / ours for count, (stays, _, ours) in found.items()}
    header = ("jobs", *(f"{one.label}, h" for one in schedulers), "gains", "the paper")
    return Findings(title, header, rows, differs, [chart], figures)


def cost(inputs: Inputs) -> Findings:
    """ResNet-50 and A3C jobs with SLOs: what they cost, and how many are late."""
    gavel = GavelInputs.of(inputs)
    gpus, jobs, rate = (6, 25, 0.4) if inputs.quick else (36, 500, 0.5)
    round_s = 10 * ROUND_S if inputs.quick else ROUND_S
    workload = gavel.workload(_with_slos(gavel, jobs, rate), cluster(gpus))
    schedulers = (
        Scheduler("maximise throughput", "max-throughput"),
        Scheduler("minimise cost", "min-cost"),
        Scheduler("minimise cost with SLOs", "min-cost-slo"),
    )
    answers = inputs.run([Case(one.label, workload, options(one, round_s=round_s)) for one in schedulers])
    base = answers[0].metrics.cost
    paper = ("1, -", "1.4x cheaper, about 35 % late", "1.2x cheaper, none late")
    rows = [
        (
            one.label,
            f"{answer.metrics.cost:.0f}",
            f"{base / answer.metrics.cost:.2f}x",
            f"{answer.metrics.slo_violations / answer.metrics.measured:.0%}",
            said,
        )
        for one, answer, said in zip(schedulers, answers, paper, strict=True)
    ]
    figures = {
        f"{one.policy}_cheaper": base / answer.metrics.cost for one, answer in zip(schedulers, answers, strict=True)
    }
    figures |= {
        f"{one.policy}_late": answer.metrics.slo_violations / answer.metrics.measured
        for one, answer in zip(schedulers, answers, strict=True)
    }
    differs = [
        gavel.speeds_note,
        f"{jobs} jobs at {rate:g}/h on {gpus} GPUs of each type, all of one GPU; the paper gives their number only.",
        "Prices: 2.48, 1.46 and 0.45 dollars for an hour of a V100, P100 and K80.",
    ]
    title = "Gavel, section 7.3: cost"
    chart = _cdf(schedulers, answers)
    header = ("policy", "dollars", "cheaper", "late", "the paper")
    return Findings(title, header, rows, differs, [chart], figures)


def _with_slos(gavel: GavelInputs, count: int, per_hour: float) -> list[TraceJob]:
    """Durations on a V100 and SLOs are those of section 7.3."""
    rng = random.Random(f"gavel-cost-{gavel.inputs.seed}")  # noqa: S311 - a workload, not a secret
    names = sorted(name for name in gavel.speeds.models if name.startswith(("ResNet-50", "A3C")))
    arrival, jobs = 0.0, []
    for index in range(count):
        arrival += rng.expovariate(per_hour / HOUR)
        family = rng.choice(("ResNet-50", "A3C"))
        model = rng.choice([name for name in names if name.startswith(family)])
        seconds = rng.choice(COST_DAYS) * DAY
        jobs.append(
            TraceJob(
                name=f"{index}",
                arrival_s=arrival,
                gpus=1,
                model=model,
                steps=steps_in(gavel.speeds, model, 1, seconds),
                slo_s=rng.choice(COST_SLOS) * seconds,
                place=InputLocation("generated trace", index + 1),
            )
        )
    return jobs


def _cdf(schedulers: Sequence[Scheduler], answers: Sequence[Summary]) -> Chart:
    lines = [
        Line(one.label, [(jct / HOUR, (rank + 1) / len(answer.jcts)) for rank, jct in enumerate(answer.jcts)])
        for one, answer in zip(schedulers, answers, strict=True)
    ]
    return Chart(lines, title="Job completion times", x="hours, logarithmic", y="part of jobs", log_x=True, top=1.0)


def table3(inputs: Inputs) -> Findings:
    """The physical cluster's traces: 8 V100, 16 P100, 24 K80."""
    gavel = GavelInputs.of(inputs)
    there = cluster(PHYSICAL)
    continuous, static = gavel.trace("phys_max_min_fairness.trace"), gavel.trace("phys_minimize_makespan.trace")
    own = continuous is None or static is None
    if continuous is None or static is None:
        shorter = [replace(job, steps=max(1, (job.steps or 0) // 8)) for job in gavel.drawn(200, gpu_mix=MULTIPLE)]
        jobs = 48 if inputs.quick else 96
        continuous = [replace(job, arrival_s=index * 480.0) for index, job in enumerate(shorter[:jobs])]
        static = shorter[100 : 100 + jobs]
    agnostic = Scheduler("makespan, agnostic", "makespan", aware=False)
    gandiva = Scheduler("Gandiva", "gandiva")
    runs = (
        ("continuous", GAVEL_LAS, "average JCT", "3.4 / 3.7"),
        ("continuous", LAS, "average JCT", "5.1 / 5.4"),
        ("static", Scheduler("Gavel", "makespan"), "makespan", "17.7 / 17.6"),
        ("static", gandiva, "makespan", "21.3 / 22.1"),
        ("static", agnostic, "makespan", ""),
    )
    workloads = {
        name: gavel.workload(trace, there, physical=True)
        for name, trace in (("continuous", continuous), ("static", static))
    }
    sharing = gavel.workload(static, shared(there), physical=True)
    round_s = 5 * ROUND_S if inputs.quick else ROUND_S
    answers = inputs.run(
        [
            Case(
                f"{trace}, {one.label}",
                sharing if one is gandiva else workloads[trace],
                options(one, round_s=round_s, colocation="gavel" if one is gandiva else "none"),
            )
            for trace, one, _, _ in runs
        ]
    )
    rows, figures, lines = [], {}, []
    for (trace, one, what, paper), answer in zip(runs, answers, strict=True):
        ours = avg_h(answer) if what == "average JCT" else answer.metrics.makespan_s / HOUR
        figures[f"{trace}_{'gandiva' if one is gandiva else 'gavel' if one.aware else 'agnostic'}"] = ours
        rows.append((trace, one.label, what, f"{ours:.2f}", paper))
        lines.append(
            Line(f"{trace}, {one.label}", [(j / HOUR, (n + 1) / len(answer.jcts)) for n, j in enumerate(answer.jcts)])
        )
    differs = [
        gavel.speeds_note if own else "Traces and speeds are the Gavel authors' own, of their physical cluster.",
        "All jobs of the continuous trace are measured; the paper measures 25 in steady state.",
        "Gandiva draws pairs of jobs of one GPU and keeps those that gain; the agnostic makespan shares nothing.",
    ]
    if own:
        differs.append(
            "Traces: drawn, a quarter as long as in section 7.1; the continuous one has a job each 8 minutes."
        )
    chart = Chart(lines, title="Job completion times", x="hours", y="part of jobs", top=1.0)
    header = ("trace", "system", "objective", "ours, simulated, h", "the paper: physical / simulated")
    return Findings("Gavel, table 3: the physical cluster's traces", header, rows, differs, [chart], figures)
