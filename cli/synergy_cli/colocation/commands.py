"""`kube-synergy colocation fit | predict | evaluate | usage`."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from synergy_cli.choice import Choice
from synergy_cli.colocation.evaluate import evaluation_text, evaluations
from synergy_cli.colocation.report import report_page
from synergy_cli.colocation.tables import Pair, measurements_of, read_pairs, read_singles
from synergy_cli.colocation.usage import usage_command
from synergy_cli.errors import BadInputError, OneLineGroup
from synergy_cli.files import read_input
from synergy_cli.simulation.inputs import bad_input
from synergy_cli.simulation.output import check_writable, write_whole
from synergy_core.colocation.predictors.effects import fit_effects
from synergy_core.colocation.predictors.evaluation import KEPT
from synergy_core.colocation.predictors.model_format import SharingModel, model_text, parse_model
from synergy_core.colocation.predictors.references import References
from synergy_core.colocation.predictors.sums import fit_sums
from synergy_core.model.measurement import Predictor
from synergy_core.model.snapshot_format import SnapshotError

single_option = click.option(
    "--single",
    required=True,
    metavar="S.csv",
    help="Measurements of jobs that ran alone: how much of the GPU and its memory they used.",
)
pairs_option = click.option(
    "--pairs", required=True, metavar="P.csv", help="Measurements of pairs of these jobs on one GPU."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


@click.group("colocation", cls=OneLineGroup)
def colocation() -> None:
    """Predict how jobs that share a GPU slow each other down."""


@colocation.command("fit")
@single_option
@pairs_option
@click.option("--out", required=True, metavar="MODEL.json", help="File for the fitted model.")
@click.option("--gpu-type", default="", help="GPU type of the measurements.")
@click.option("--mps/--no-mps", default=True, show_default=True, help="Whether the pairs ran under MPS.")
@click.option(
    "--estimator",
    is_flag=True,
    help="Predict from the most similar measured models (Gavel's estimator) instead of from utilisation.",
)
@click.option(
    "--counters",
    is_flag=True,
    help="Fit to GPU counters, the columns sm_active and dram_active of S.csv, not to utilisation.",
)
@json_option
def fit_command(
    *, single: str, pairs: str, out: str, gpu_type: str, mps: bool, estimator: bool, counters: bool, as_json: bool
) -> None:
    """Fit the predictors to measured pairs."""
    check_writable("--out", out)
    with bad_input():
        singles = read_singles(Path(single), counters=counters)
        measured = measurements_of(read_pairs(Path(pairs), singles, measured=True))
    if len(measured) < 3:
        raise BadInputError(f"{pairs}: {len(measured)} pairs are too few to fit to; measure at least three")
    try:
        references = References.measured(measured) if estimator else None
    except ValueError as error:
        raise BadInputError(f"{single}: {error}; the estimator needs the jobs' models by name") from error
    model = SharingModel(
        gpu_type=gpu_type,
        mps=mps,
        measurements=len(measured),
        sums=fit_sums(measured, counters=counters),
        effects=fit_effects(measured, counters=counters),
        references=references,
    )
    write_whole(out, model_text(model) + "\n")
    if as_json:
        click.echo(json.dumps({"pairs": len(measured), "out": out}))
    else:
        click.echo(f"fitted to {len(measured)} pairs: {out}")


@colocation.command("predict")
@click.option("--model", required=True, metavar="MODEL.json", help="Model file that `colocation fit` wrote.")
@single_option
@pairs_option
@click.option(
    "--out",
    required=True,
    metavar="OUT.csv",
    help="File for the predictions: one line for each pair, in the order of the input.",
)
@click.option(
    "--predictor",
    type=Choice(["effects", "sums"]),
    default="effects",
    show_default=True,
    help="Ours (by a model that was fitted with --estimator, that), or the thesis', linear in the sums.",
)
@json_option
def predict_command(*, model: str, single: str, pairs: str, out: str, predictor: str, as_json: bool) -> None:
    """Predict the speed of both jobs of each pair, relative to running alone, and whether both keep 85 %."""
    check_writable("--out", out)
    try:
        fitted = parse_model(read_input(model, "--model"))
    except SnapshotError as error:
        raise BadInputError(f"{model}: {error}") from error
    with bad_input():
        asked = read_pairs(Path(pairs), read_singles(Path(single), counters=fitted.sums.counters), measured=False)
    told = _predictions(fitted.predictor(sums=predictor == "sums"), asked)
    write_whole(out, _predictions_csv(told))
    document = _judgement(asked, told)
    if as_json:
        click.echo(json.dumps(document))
    else:
        shown = ", ".join(f"{name} {value:.4g}" for name, value in document.items() if value is not None)
        click.echo(f"{shown}: {out}")


@colocation.command("evaluate")
@single_option
@pairs_option
@click.option("--report", metavar="OUT.html", help="Write the calibration as a plot.")
@json_option
def evaluate_command(*, single: str, pairs: str, report: str | None, as_json: bool) -> None:
    """Evaluate the predictors on model families that they were not fitted to (leave one family out)."""
    check_writable("--report", report)
    with bad_input():
        measured = measurements_of(read_pairs(Path(pairs), read_singles(Path(single)), measured=True))
    try:
        found = evaluations(measured)
    except ValueError as error:
        raise BadInputError(f"{pairs}: without one family of models {error}") from error
    if report is not None:
        write_whole(report, report_page(found))
    click.echo(json.dumps(asdict(found)) if as_json else evaluation_text(found))


colocation.add_command(usage_command)


def _predictions(predictor: Predictor, asked: Sequence[Pair]) -> list[tuple[float, ...]]:
    return [predictor.fractions(pair.usages) for pair in asked]


def _predictions_csv(told: Sequence[tuple[float, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("predicted_speed1", "predicted_speed2", "share"))
    for first, second in told:
        writer.writerow((f"{first:.6f}", f"{second:.6f}", int(_shares((first, second)))))
    return text.getvalue()


def _shares(fractions: Sequence[float]) -> bool:
    return min(fractions) >= KEPT


def _judgement(asked: Sequence[Pair], told: Sequence[tuple[float, ...]]) -> dict[str, float | int | None]:
    known = [(one, pair.fractions) for pair, one in zip(asked, told, strict=True) if pair.fractions is not None]
    if not known:
        return {"pairs": len(asked), "mae": None, "share_accuracy": None}
    errors = [abs(p - t) for one, truth in known for p, t in zip(one, truth, strict=True)]
    right = [_shares(one) == _shares(truth) for one, truth in known]
    return {"pairs": len(asked), "mae": sum(errors) / len(errors), "share_accuracy": sum(right) / len(right)}
