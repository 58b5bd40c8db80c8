"""`kube-synergy gpu measure | measure-pairs | measure-cpus`."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from synergy_cli.errors import BadInputError, OneLineGroup
from synergy_cli.gpu.cpus import HarnessError, measured_cpus, pipeline_command
from synergy_cli.gpu.everything import Wanted, measured
from synergy_cli.gpu.groups import Options, measured_groups, only, training_command
from synergy_cli.gpu.machine import Gpu, NoGpuError, find_gpu, machine, no_gpu
from synergy_cli.gpu.measuring import Setting, TrainingError
from synergy_cli.gpu.models import MODELS
from synergy_cli.gpu.page import page
from synergy_cli.gpu.tables import tables as as_tables
from synergy_cli.numbers import Within
from synergy_cli.simulation.output import check_writable, write_whole
from synergy_core.model.names import not_there

FOLDER = "docs/measurements"
TABLES = ("single.csv", "pairs.csv")
THESIS_MODELS = ("resnet", "vgg", "se-resnet", "transformer")
ON_CPU_STEP_S = 0.05
"""What stands in for a GPU's step in the curve over CPUs, where there is no GPU."""

out_option = click.option("--out", metavar="OUT.json", help=f"Where the figures go; by default into {FOLDER}.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


python_option = click.option(
    "--python",
    default=sys.executable,
    metavar="PROGRAM",
    help="The Python that has PyTorch, and kube-synergy too. Default: this one.",
)


@click.group("gpu", cls=OneLineGroup)
def gpu() -> None:
    """Measure on a real GPU of this machine."""


@gpu.command("measure")
@click.option("--models", default=",".join(THESIS_MODELS), show_default=True, help="Models, separated by commas.")
@click.option("--batches", default="64,128,256", show_default=True, help="Batch sizes, separated by commas.")
@click.option("--pairs", default=24, show_default=True, type=click.IntRange(1), help="Largest number of pairs.")
@click.option("--threes", default=12, show_default=True, type=click.IntRange(0), help="Largest number of threes.")
@click.option(
    "--limited",
    default=6,
    show_default=True,
    type=click.IntRange(0),
    help="Pairs also measured with limits on threads.",
)
@click.option("--seconds", default=4.0, show_default=True, type=Within(0.5, 600), help="Seconds per measurement.")
@click.option("--on-cpu", is_flag=True, help="Try the command on the CPU. Such figures tell nothing of a GPU.")
@click.option("--out", default=FOLDER, show_default=True, metavar="DIR", help="Folder for the figures and tables.")
@python_option
@json_option
def measure_command(
    *,
    models: str,
    batches: str,
    pairs: int,
    threes: int,
    limited: int,
    seconds: float,
    on_cpu: bool,
    out: str,
    python: str,
    as_json: bool,
) -> None:
    """Measure all that the documentation has tables of.

    Models alone, in twos and threes, with and without MPS and with limits on threads; how well the predictors do; speed
    at each CPU count; how long a checkpoint and a suspension take.
    """
    settings = _settings(models, batches)
    found = _gpu(as_json, ON_CPU_STEP_S if on_cpu else None, python)
    if found is None:
        return
    _make_folder(out)
    name = "cpu" if on_cpu else _slug(found)
    for file in (f"{name}.json", f"{name}.md", *(f"{name}-{table}" for table in TABLES)):
        check_writable("--out", f"{out}/{file}")
    options = Options(
        settings=settings,
        most_pairs=pairs,
        most_threes=threes,
        most_limited=limited,
        seconds=seconds,
    )
    wanted = Wanted(options=options, python=python, on_cpu=on_cpu, stand_in_s=ON_CPU_STEP_S if on_cpu else None)
    try:
        figures = measured(found, wanted, os.environ, _report)
    except TrainingError as error:
        raise BadInputError(f"nothing could be measured: {error}") from error
    for table, text in zip(TABLES, as_tables(figures), strict=True):
        write_whole(f"{out}/{name}-{table}", text)
    document = _document(found, figures)
    write_whole(f"{out}/{name}.md", page(document))
    _write(f"{out}/{name}.json", document, as_json=as_json)


@gpu.command("measure-pairs")
@click.option("--models", default=",".join(MODELS), show_default=True, help="Models, separated by commas.")
@click.option("--batches", default="16,64,256", show_default=True, help="Batch sizes, separated by commas.")
@click.option("--pairs", default=24, show_default=True, type=click.IntRange(1), help="Largest number of pairs.")
@click.option("--seconds", default=4.0, show_default=True, type=Within(0.5, 600), help="Seconds per measurement.")
@click.option("--tables", metavar="DIR", help="Also write single.csv and pairs.csv for `colocation fit`.")
@out_option
@python_option
@json_option
def measure_pairs(
    *,
    models: str,
    batches: str,
    pairs: int,
    seconds: float,
    tables: str | None,
    out: str | None,
    python: str,
    as_json: bool,
) -> None:
    """Train small models alone and in pairs, with and without MPS; fit and evaluate the predictors."""
    settings = _settings(models, batches)
    found = _gpu(as_json, None, python)
    if found is None:
        return
    target = _target(out, found, "pairs")
    for name in TABLES if tables is not None else ():
        check_writable("--tables", f"{tables}/{name}")
    options = Options(settings=settings, most_pairs=pairs, seconds=seconds)
    try:
        command = partial(training_command, python=python)
        figures = measured_groups(found.uuid, options, os.environ, _report, command)
    except TrainingError as error:
        raise BadInputError(f"nothing could be measured: {error}") from error
    for name, text in zip(TABLES, as_tables(figures), strict=True) if tables is not None else ():
        write_whole(f"{tables}/{name}", text)
    _write(target, _document(found, figures), as_json=as_json)


@gpu.command("measure-cpus")
@click.option("--most", type=click.IntRange(2), help="Largest number of CPUs. Default: all that this process may use.")
@click.option(
    "--stand-in",
    type=Within(0, 60, min_open=True),
    metavar="SECONDS",
    help="Use no GPU; wait this many seconds per step instead.",
)
@out_option
@python_option
@json_option
def measure_cpus(*, most: int | None, stand_in: float | None, out: str | None, python: str, as_json: bool) -> None:
    """Train with a real DataLoader at every CPU count; compare with the profile search, which measures few counts."""
    available = len(os.sched_getaffinity(0))
    if most is not None and most > available:
        raise BadInputError(f"--most: {most} is more than the {available} CPUs that this process may use")
    found = _gpu(as_json, stand_in, python)
    if found is None:
        return
    target = _target(out, found, "cpus")
    environ = {**os.environ, **only(found.uuid)}
    command = partial(pipeline_command, stand_in_s=stand_in, python=python)
    try:
        figures = measured_cpus(most or available, environ, _report, command, ("--steps", "100"))
    except (HarnessError, ValueError) as error:
        raise BadInputError(f"nothing could be measured: {error}") from error
    _write(target, _document(found, figures), as_json=as_json)


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


def _gpu(as_json: bool, stand_in_s: float | None, python: str) -> Gpu | None:
    """The GPU to measure on, or its substitute; None, with a word on why, where there is none."""
    try:
        found = find_gpu(os.environ) if stand_in_s is None else no_gpu(stand_in_s)
        lacking = lacking_module(python)
        if lacking is not None:
            raise NoGpuError(f"{python} has no {lacking}: install it there, or name the Python that has it (--python)")
    except NoGpuError as error:
        click.echo(json.dumps({"skipped": str(error)}) if as_json else f"skipped: {error}")
        return None
    return found


def lacking_module(python: str) -> str | None:
    """What the trainings import and that Python does not have. Raises BadInputError if it cannot be run."""
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
    for module in ("torch", "synergy_cli"):
        try:
            answer = subprocess.run([python, "-c", look, module], capture_output=True, check=False)
        except OSError as error:
            raise BadInputError(f"--python: {python} cannot be run: {error.strerror}") from error
        if answer.returncode != 0:
            return module
    return None


def _target(out: str | None, found: Gpu, what: str) -> str:
    if out is None:
        Path(FOLDER).mkdir(parents=True, exist_ok=True)
        out = f"{FOLDER}/{_slug(found)}-{what}.json"
    check_writable("--out", out)
    return out


def _make_folder(out: str) -> None:
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInputError(f"--out: the folder {out} cannot be made: {error.strerror}") from error


def _slug(found: Gpu) -> str:
    return re.sub(r"[^a-z0-9]+", "-", found.name.lower()).strip("-")


def _report(line: str) -> None:
    click.echo(line, err=True)


def _document(found: Gpu, figures: Mapping[str, Any]) -> dict[str, Any]:
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return {"machine": machine(found), "measured_at": when, **figures}


def _write(target: str, document: Mapping[str, Any], *, as_json: bool) -> None:
    write_whole(target, json.dumps(document, indent=1) + "\n")
    click.echo(json.dumps(document) if as_json else target)
