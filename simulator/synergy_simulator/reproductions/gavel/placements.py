"""Policies that see where a job's GPUs are (section 3.1): the paper has no figure of them to compare with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from synergy_simulator.grid import Case
from synergy_simulator.inputs.errors import InputError, InputLocation
from synergy_simulator.inputs.traces import TraceJob
from synergy_simulator.report.chart import Chart, Line
from synergy_simulator.report.summary import Summary
from synergy_simulator.reproductions.common import HOUR, Findings, Inputs, avg_h, mean
from synergy_simulator.reproductions.gavel.common import (
    GAVEL_LAS,
    LAS,
    ROUND_S,
    TRACE_NOTE,
    GavelInputs,
    cluster,
    options,
)
from synergy_simulator.workloads.gavel_mix import MULTIPLE

_PREEMPTION_S: Final = 20.0
_SEEDS: Final = 3


@dataclass(frozen=True, slots=True)
class _Setting:
    """Jobs on nodes of a size, simulated once for each of several draws of the trace."""

    label: str
    traces: Sequence[Sequence[TraceJob]]
    gpus: int
    per_node: int


def placements(inputs: Inputs) -> Findings:
    """LAS that knows nothing of speeds, that knows the GPU types, and that knows placements too."""
    gavel = GavelInputs.of(inputs)
    if not gavel.speeds.spread:
        place = InputLocation("--data", None, "gavel/simulation_throughputs.json")
        raise InputError(place, "is not there; it has the speeds of jobs that lie spread")
    runs: Mapping[str, tuple[bool, Any]] = {
        "agnostic": (True, options(LAS)),
        "aware": (True, options(GAVEL_LAS)),
        "placement-sensitive": (True, options(GAVEL_LAS, placement_sensitive=True)),
        "aware, if spreading cost nothing": (False, options(GAVEL_LAS)),
    }
    round_s = 10 * ROUND_S if inputs.quick else ROUND_S
    settings = _settings(gavel)
    cases = [
        Case(
            f"{one.label}, {label}",
            gavel.workload(trace, cluster(one.gpus, per_node=one.per_node), unconsolidated=costs),
            replace(how, preemption_overhead_s=_PREEMPTION_S, round_s=round_s),
        )
        for one in settings
        for label, (costs, how) in runs.items()
        for trace in one.traces
    ]
    answers = iter(inputs.run(cases))
    found = {one.label: {label: [next(answers) for _ in one.traces] for label in runs} for one in settings}
    rows = [
        (
            trace,
            label,
            f"{mean([avg_h(each) for each in those]):.2f}",
            f"{mean([each.metrics.makespan_s / HOUR for each in those]):.1f}",
            f"{mean([each.metrics.preemptions for each in those]):.0f}",
        )
        for trace, by in found.items()
        for label, those in by.items()
    ]
    figures = {
        f"{trace}/{label}/{what}": value
        for trace, by in found.items()
        for label, those in by.items()
        for what, value in (
            ("avg_jct_h", mean([avg_h(each) for each in those])),
            ("makespan_h", mean([each.metrics.makespan_s / HOUR for each in those])),
        )
    }
    differs = [
        "The paper says how policies become sensitive to placement, and shows no figure of it.",
        "Speeds on few and on many nodes: the Gavel authors' table; a job is spread on more nodes than the fewest.",
        TRACE_NOTE,
        f"A preemption costs {_PREEMPTION_S:.0f} s. Means of {len(settings[-1].traces)} drawn traces.",
    ]
    title = "Gavel, section 3.1: placement-sensitive LAS"
    header = ("trace", "LAS", "average JCT, h", "makespan, h", "preemptions")
    return Findings(title, header, rows, differs, [_cdf(title, found[settings[-1].label])], figures)


def _settings(gavel: GavelInputs) -> list[_Setting]:
    if gavel.inputs.quick:
        return [_Setting("30 jobs arriving", [gavel.drawn(30, gpu_mix=MULTIPLE, jobs_per_hour=0.9)], 16, 8)]
    drawn = [gavel.drawn(150, gpu_mix=MULTIPLE, jobs_per_hour=0.9, seed=seed) for seed in range(_SEEDS)]
    smaller = [gavel.drawn(150, gpu_mix=MULTIPLE, jobs_per_hour=0.6, seed=seed) for seed in range(_SEEDS)]
    static = gavel.trace("static_multi_120_s0.csv")
    return [
        *([] if static is None else [_Setting("120 jobs at once, 3 x 12 GPUs by 4", [static], 12, 4)]),
        _Setting("0.6 jobs/h, 3 x 12 GPUs by 4", smaller, 12, 4),
        _Setting("0.9 jobs/h, 3 x 16 GPUs by 8", drawn, 16, 8),
    ]


def _cdf(title: str, by: Mapping[str, Sequence[Summary]]) -> Chart:
    lines = []
    for label, those in by.items():
        jcts = sorted(jct for each in those for jct in each.jcts)
        lines.append(Line(label, [(jct / HOUR, (rank + 1) / len(jcts)) for rank, jct in enumerate(jcts)]))
    return Chart(lines, title=title, x="JCT in hours, logarithmic", y="part of jobs", log_x=True, top=1.0)
