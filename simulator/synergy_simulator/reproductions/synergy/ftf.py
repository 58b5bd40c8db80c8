"""Finish-time fairness: section 5.3.2 reports a gain of 2.3x on single-GPU jobs and of 2x on multi-GPU jobs."""

from synergy_simulator.report.summary import Summary
from synergy_simulator.reproductions.common import HOUR, Findings, Inputs, avg_h
from synergy_simulator.reproductions.sweeps import W1, Sweep, scale_notes, scale_of, trace_note
from synergy_simulator.workloads.generator import PHILLY, SINGLE

MECHANISMS = ("proportional", "tune")
JOBS = {"single-GPU": (SINGLE, (9.0,), "2.3x"), "multi-GPU": (PHILLY, (5.5, 7.0), "2x")}
"""GPU demands, jobs per hour, the paper's gain."""


def ftf(inputs: Inputs) -> Findings:
    """Average JCT under finish-time fairness over load."""
    sweeps = {
        name: Sweep(
            policy="ftf",
            mechanisms=MECHANISMS,
            loads=loads[-1:] if inputs.quick else loads,
            split=W1,
            gpu_mix=mix,
            scale=scale_of(inputs),
        )
        for name, (mix, loads, _) in JOBS.items()
    }
    cases = [case for name, sweep in sweeps.items() for case in sweep.cases(inputs, f"{name} ")]
    answers = iter(inputs.run(cases))
    rows, figures = [], {}
    for name, sweep in sweeps.items():
        for load in sweep.loads:
            usual, tuned = next(answers), next(answers)
            rows.append(_row(name, load, sweep.wanted(inputs, load), usual, tuned))
            figures[f"gain_{name}_at_{load:g}"] = avg_h(usual) / avg_h(tuned)
    differs = [
        inputs.profiles_note,
        trace_note(inputs, single=True),
        "The paper gives the gains in words, and no load; largest rho first, as Themis has it.",
        *scale_notes(scale_of(inputs)),
    ]
    header = ("jobs", "jobs/h", "GPUs wanted", "proportional, h", "tune, h", "gain", "waiting, h", "the paper, up to")
    return Findings("Finish-time fairness", header, rows, differs, (), figures)


def _row(name: str, load: float, wanted: float, usual: Summary, tuned: Summary) -> tuple[str, ...]:
    waiting = f"{usual.metrics.avg_queue_s / HOUR:.1f} / {tuned.metrics.avg_queue_s / HOUR:.1f}"
    gain = f"{avg_h(usual) / avg_h(tuned):.2f}x"
    return (
        name,
        f"{load:g}",
        f"{wanted:.0%}",
        f"{avg_h(usual):.1f}",
        f"{avg_h(tuned):.1f}",
        gain,
        waiting,
        JOBS[name][2],
    )
