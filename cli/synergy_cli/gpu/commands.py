"""`kube-synergy gpu measure-pairs | measure-cpus`."""

import importlib.util
import json
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from synergy_cli.errors import BadInputError, OneLineGroup
from synergy_cli.gpu.cpus import HarnessError, measured_cpus, pipeline_command
from synergy_cli.gpu.machine import Gpu, NoGpuError, find_gpu, machine, no_gpu
from synergy_cli.gpu.measuring import Setting, TrainingError
from synergy_cli.gpu.pairs import Options, measured_pairs, only
from synergy_cli.gpu.pairs import tables as as_tables
from synergy_cli.gpu.training import MODELS
from synergy_cli.numbers import Within
from synergy_cli.simulation.output import check_writable, write_whole
from synergy_core.model.names import not_there

FOLDER = "docs/measurements"
TABLES = ("single.csv", "pairs.csv")

out_option = click.option("--out", metavar="OUT.json", help=f"Where the figures go; by default into {FOLDER}.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


@click.group("gpu", cls=OneLineGroup)
def gpu() -> None:
    """Measure on a real GPU of this machine."""


@gpu.command("measure-pairs")
@click.option("--models", default=",".join(MODELS), show_default=True, help="Models, separated by commas.")
@click.option("--batches", default="16,64,256", show_default=True, help="Batch sizes, separated by commas.")
@click.option("--pairs", default=24, show_default=True, type=click.IntRange(1), help="Largest number of pairs.")
@click.option("--seconds", default=4.0, show_default=True, type=Within(0.5, 600), help="Seconds per measurement.")
@click.option("--tables", metavar="DIR", help="Also write single.csv and pairs.csv for `colocation fit`.")
@out_option
@json_option
def measure_pairs(
    *, models: str, batches: str, pairs: int, seconds: float, tables: str | None, out: str | None, as_json: bool
) -> None:
    """Train small models alone and in pairs, with and without MPS; fit and evaluate the predictors."""
    settings = _settings(models, batches)
    found = _gpu(as_json)
    if found is None:
        return
    target = _target(out, found, "pairs")
    for name in TABLES if tables is not None else ():
        check_writable("--tables", f"{tables}/{name}")
    options = Options(settings=settings, most_pairs=pairs, seconds=seconds)
    try:
        figures = measured_pairs(found.uuid, options, os.environ, _report)
    except TrainingError as error:
        raise BadInputError(f"nothing could be measured: {error}") from error
    for name, text in zip(TABLES, as_tables(figures), strict=True) if tables is not None else ():
        write_whole(f"{tables}/{name}", text)
    _write(target, found, figures, as_json=as_json)


@gpu.command("measure-cpus")
@click.option("--most", type=click.IntRange(2), help="Largest number of CPUs. Default: all that this process may use.")
@click.option(
    "--stand-in",
    type=Within(0, 60, min_open=True),
    metavar="SECONDS",
    help="Use no GPU; wait this many milliseconds per step instead.",
)
@out_option
@json_option
def measure_cpus(*, most: int | None, stand_in: float | None, out: str | None, as_json: bool) -> None:
    """Train with a real DataLoader at every CPU count; compare with the profile search, which measures few counts."""
    available = len(os.sched_getaffinity(0))
    if most is not None and most > available:
        raise BadInputError(f"--most: {most} is more than the {available} CPUs that this process may use")
    found = _gpu(as_json, stand_in)
    if found is None:
        return
    target = _target(out, found, "cpus")
    environ = {**os.environ, **only(found.uuid)}
    command = partial(pipeline_command, stand_in_s=stand_in)
    try:
        figures = measured_cpus(most or available, environ, _report, command, ("--steps", "100"))
    except (HarnessError, ValueError) as error:
        raise BadInputError(f"nothing could be measured: {error}") from error
    _write(target, found, figures, as_json=as_json)


def _settings(models: str, batches: str) -> tuple[Setting, ...]:
    names = [name.strip() for name in models.split(",")]
    for name in names:
        if name not in MODELS:
            raise BadInputError(f"--models: {not_there(name, MODELS)}")
    try:
        sizes = [int(size) for size in batches.split(",")]
    except ValueError:
        raise BadInputError(f"--batches: {batches!r} must be whole numbers with commas between them") from None
    if min(sizes) < 1:
        raise BadInputError(f"--batches: {min(sizes)} must be at least 1")
    return tuple(sorted({Setting(name, size) for name in names for size in sizes}))


def _gpu(as_json: bool, stand_in_s: float | None = None) -> Gpu | None:
    """The GPU to measure on, or its substitute; None, with a word on why, where there is none."""
    try:
        found = find_gpu(os.environ) if stand_in_s is None else no_gpu(stand_in_s)
        if not has_pytorch():
            raise NoGpuError("PyTorch is not installed here: pip install torch")
    except NoGpuError as error:
        click.echo(json.dumps({"skipped": str(error)}) if as_json else f"skipped: {error}")
        return None
    return found


def has_pytorch() -> bool:
    """Whether the trainings can import it."""
    return importlib.util.find_spec("torch") is not None


def _target(out: str | None, found: Gpu, what: str) -> str:
    if out is None:
        Path(FOLDER).mkdir(parents=True, exist_ok=True)
        out = f"{FOLDER}/{re.sub(r'[^a-z0-9]+', '-', found.name.lower()).strip('-')}-{what}.json"
    check_writable("--out", out)
    return out


def _report(line: str) -> None:
    click.echo(line, err=True)


def _write(target: str, found: Gpu, figures: Mapping[str, Any], *, as_json: bool) -> None:
    when = datetime.now(UTC).isoformat(timespec="seconds")
    document = {"machine": machine(found), "measured_at": when, **figures}
    write_whole(target, json.dumps(document, indent=1) + "\n")
    click.echo(json.dumps(document) if as_json else target)
