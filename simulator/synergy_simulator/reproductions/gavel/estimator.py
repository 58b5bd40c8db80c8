"""What the throughput estimator of Gavel saves against full profiling, and how far it is off (sections 3.3 and 6)."""

from collections.abc import Mapping
from statistics import fmean

from synergy_core.colocation.predictors.pair_table import PairTable
from synergy_simulator.engine.profiling import Error, error_of, profiled
from synergy_simulator.report.chart import Chart, Line
from synergy_simulator.reproductions.common import Findings, Inputs
from synergy_simulator.reproductions.gavel.common import GavelInputs, cluster

_REFERENCES = 16
_PAIR_S = 120
"""Seconds of a run beside a reference: the default of profiling.referencePairSeconds."""
_LABELS = ("chosen", "at random")


def estimator(inputs: Inputs) -> Findings:
    """Error of the pairs that were not measured, over the references beside which a new job type runs."""
    gavel = GavelInputs.of(inputs)
    limits, seeds = ((1, 4), 2) if inputs.quick else ((1, 2, 3, 4, 6, 8), 10)
    tables = gavel.workload(gavel.drawn(1, jobs_per_hour=1.0), cluster(4)).pairs
    lines: dict[str, list[tuple[float, float]]] = {label: [] for label in _LABELS}
    rows: list[tuple[str, ...]] = []
    figures: dict[str, float] = {}
    for most in limits:
        for label in _LABELS:
            pairs, saved, error = _mean(tables, most, range(inputs.seed, inputs.seed + seeds), choose=label == "chosen")
            lines[label].append((pairs, error.mean))
            rows.append(
                (
                    f"{most}, {label}",
                    f"{pairs:.2f}",
                    f"{pairs * _PAIR_S:.0f}",
                    f"{saved:.0%}",
                    f"{error.mean:.3f}",
                    f"{error.of_the_mean:.3f}",
                    f"{error.right:.0%}",
                )
            )
            key = f"{label.replace(' ', '_')}_{most}"
            figures["error_of_the_mean"] = error.of_the_mean
            figures |= {f"saved_{key}": saved, f"error_{key}": error.mean, f"right_{key}": error.right}
    header = (
        "references at the most",
        "pairs of a job type",
        "GPU-seconds",
        "saved",
        "error",
        "error of the mean",
        "right on gain",
    )
    differs = [
        gavel.speeds_note,
        f"{_REFERENCES} job types are references; each other one is new. Means of {seeds} draws of the references.",
        f"A pair runs for {_PAIR_S} s on one GPU. Full profiling runs {_REFERENCES} pairs: {_REFERENCES * _PAIR_S} s.",
        "The error is the mean absolute one of what job types keep of their speed, over pairs that were not measured.",
        "The paper gives no figures for this step.",
    ]
    title = "Gavel, section 6: what a job's fingerprint takes, and its error"
    named = [Line(f"references {label}", points) for label, points in lines.items()]
    charts = [Chart(named, title=title, x="pairs measured of a job type", y="mean absolute error")]
    return Findings(title, header, rows, differs, charts, figures)


def _mean(tables: Mapping[str, PairTable], most: int, seeds: range, *, choose: bool) -> tuple[float, float, Error]:
    """Pairs of a job type on a GPU type, the part of full profiling's time that is saved, and the error."""
    pairs, saved, errors = [], [], []
    for seed in seeds:
        found = {
            name: profiled(table, references=_REFERENCES, beside=most, seed=seed, choose=choose)
            for name, table in tables.items()
        }
        taken, full = sum(one.pairs for one in found.values()), sum(one.full for one in found.values())
        pairs.append(_REFERENCES * taken / full)
        saved.append(1.0 - taken / full)
        errors.append(error_of({name: one.estimator for name, one in found.items()}, tables))
    error = Error(
        sum(one.pairs for one in errors),
        fmean(one.mean for one in errors),
        fmean(one.of_the_mean for one in errors),
        fmean(one.right for one in errors),
    )
    return fmean(pairs), fmean(saved), error
