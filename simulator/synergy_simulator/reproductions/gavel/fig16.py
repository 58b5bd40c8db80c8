"""Figure 16 of Gavel: LAS with space sharing by estimated throughputs, by the true ones, and without (section 7.6)."""

from synergy_simulator.engine.profiling import Error, error_of, profiled
from synergy_simulator.grid import Case
from synergy_simulator.inputs.clusters import shared
from synergy_simulator.report.chart import Chart, Line
from synergy_simulator.reproductions.common import Findings, Inputs, avg_h
from synergy_simulator.reproductions.gavel.common import GAVEL_LAS, ROUND_S, TRACE_NOTE, GavelInputs, cluster, options

_GPUS = 4
"""Of each type: 12 in all."""
_REFERENCES = 16
_BESIDE = 4
_LABELS = ("without", "oracle", "estimated")


def _error_note(error: Error) -> str:
    usual = f"{error.of_the_mean:.3f} by their mean"
    told = f"{error.right:.0%} right on whether sharing gains"
    return f"Of {error.pairs} pairs not measured the mean absolute error is {error.mean:.3f} ({usual}); {told}."


def fig16(inputs: Inputs) -> Findings:
    """Average JCT over load."""
    gavel = GavelInputs.of(inputs)
    loads, jobs, measure = ((0.6,), 70, (15, 45)) if inputs.quick else ((0.4, 0.5, 0.6), 400, (100, 300))
    round_s = 20 * ROUND_S if inputs.quick else ROUND_S
    cases = []
    for load in loads:
        workload = gavel.workload(gavel.drawn(jobs, jobs_per_hour=load), shared(cluster(_GPUS)))
        found_by = [
            (gpu_type, profiled(table, references=_REFERENCES, beside=_BESIDE, seed=inputs.seed))
            for gpu_type, table in workload.pairs.items()
        ]
        estimators = {gpu_type: one.estimator for gpu_type, one in found_by}
        saved = 1.0 - sum(one.pairs for _, one in found_by) / sum(one.full for _, one in found_by)
        error = error_of(estimators, workload.pairs)
        alone = options(GAVEL_LAS, measure=measure, round_s=round_s)
        together = options(GAVEL_LAS, measure=measure, round_s=round_s, colocation="gavel")
        told = options(GAVEL_LAS, measure=measure, round_s=round_s, colocation="gavel", predictors=estimators)
        cases += [
            Case(f"{label}, {load:g} jobs/h", workload, how)
            for label, how in zip(_LABELS, (alone, together, told), strict=True)
        ]
    answers = iter(inputs.run(cases))
    found = {load: {label: next(answers) for label in _LABELS} for load in loads}
    rows = [
        (
            f"{load:g}",
            *(f"{avg_h(by[label]):.2f}" for label in _LABELS),
            f"{avg_h(by['without']) / avg_h(by['oracle']):.3f}x",
            f"{avg_h(by['estimated']) / avg_h(by['oracle']) - 1.0:+.1%}",
            "a very small difference",
        )
        for load, by in found.items()
    ]
    header = (
        "jobs/h",
        *(f"{label}, h" for label in _LABELS),
        "gain of sharing",
        "estimated against oracle",
        "the paper",
    )
    differs = [
        gavel.speeds_note,
        TRACE_NOTE,
        f"Estimator: {_REFERENCES} job types are references, each other one runs beside {_BESIDE} of them at the most.",
        f"These runs take {saved:.0%} less GPU time than runs beside all references.",
        _error_note(error),
        f"Seed {inputs.seed}. Jobs {measure[0]} to {measure[1]} are measured. The paper does not tell its loads.",
    ]
    lines = [Line(label, [(load, avg_h(by[label])) for load, by in found.items()]) for label in _LABELS]
    title = "Gavel, figure 16: space sharing by estimated throughputs, 12 GPUs"
    charts = [Chart(lines, title=title, x="jobs per hour", y="average JCT, hours")]
    figures = {f"{label}_jct_h_at_{load:g}": avg_h(by[label]) for load, by in found.items() for label in _LABELS}
    figures |= {"saved": saved, "error": error.mean, "error_of_the_mean": error.of_the_mean, "right": error.right}
    return Findings(title, header, rows, differs, charts, figures)
