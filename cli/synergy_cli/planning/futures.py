"""What the commands about the future share: their options, their files, and the tables of times."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any

import click

from synergy_cli.errors import BadInputError
from synergy_cli.files import in_file, read_input
from synergy_cli.numbers import Seconds
from synergy_cli.text_table import text_table
from synergy_core.model.snapshot import FieldError, PastJob, Snapshot
from synergy_core.model.snapshot_format import SnapshotError, parse_snapshot
from synergy_simulator.forecast.what_if import Future
from synergy_simulator.inputs.errors import InputError
from synergy_simulator.inputs.traces import TraceJob, read_trace


def draw_options(command: Any) -> Any:
    """`--draws`, `--seed` and `--horizon`."""
    for option in (
        click.option("--horizon", "horizon_s", type=Seconds(min=1), help="How far to look ahead, in seconds."),
        click.option("--seed", default=0, show_default=True, type=int, help="Seed of the draws."),
        click.option(
            "--draws",
            default=20,
            show_default=True,
            type=click.IntRange(1, 10_000),
            help="Number of random futures to simulate.",
        ),
    ):
        command = option(command)
    return command


def read_snapshot(source: str) -> Snapshot:
    """The snapshot of a file. Raises BadInputError naming its first bad field."""
    try:
        return parse_snapshot(read_input(source, "SNAPSHOT.json"))
    except SnapshotError as error:
        raise BadInputError(in_file(source, error)) from error


@contextmanager
def field_errors() -> Iterator[None]:
    """Turn what is wrong with a field into bad input that names it, and a library that is missing into one line."""
    try:
        yield
    except FieldError as error:
        raise BadInputError(f"{error.path}: {error.problem}") from error
    except ModuleNotFoundError as error:
        raise click.ClickException(f"the policy needs {error.name}: install kube-synergy[sim]") from error


def history_of(name: str) -> list[PastJob]:
    """The jobs of a trace as past arrivals. Raises BadInputError naming file, line and field."""
    try:
        return [_past(job) for job in read_trace(Path(name))]
    except InputError as error:
        raise BadInputError(str(error)) from error


def _past(job: TraceJob) -> PastJob:
    finish = None if job.duration_s is None else job.arrival_s + job.duration_s
    steps = None if job.steps is None else float(job.steps)
    return PastJob(arrival_s=job.arrival_s, gpus=job.gpus, model=job.model or "", steps=steps, finish_s=finish)


def what_if_text(as_is: Future, other: Future, now: float) -> str:
    """Both futures as tables: the sums, and the jobs for which something changes."""
    sums = [
        ["average JCT", f"{as_is.avg_jct_s / 3600:.2f} h", f"{other.avg_jct_s / 3600:.2f} h"],
        ["makespan", f"{as_is.makespan_s / 3600:.2f} h", f"{other.makespan_s / 3600:.2f} h"],
        ["GPUs in use", f"{as_is.gpu_utilization:.0%}", f"{other.gpu_utilization:.0%}"],
    ]
    never = (inf, inf)
    rows = [
        [
            name,
            *(ahead(one.times.get(name, never)[0], now) for one in (as_is, other)),
            *(ahead(one.times.get(name, never)[1], now) for one in (as_is, other)),
        ]
        for name in sorted(as_is.times.keys() | other.times.keys())
        if as_is.times.get(name) != other.times.get(name)
    ]
    header = ["JOB", "START AS IS", "WHAT IF", "END AS IS", "WHAT IF"]
    jobs = text_table(header, rows) if rows else "no job starts or ends at another time"
    return f"{text_table(['', 'AS IS', 'WHAT IF'], sums)}\n\n{jobs}"


def ahead(moment: float, now: float) -> str:
    """How far a moment is from now, in hours or minutes."""
    if moment == inf:
        return "beyond"
    seconds = moment - now
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"
