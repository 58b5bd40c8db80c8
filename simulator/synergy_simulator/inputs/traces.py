"""Traces of jobs: the native table, and those of the papers' simulators, known by their headers."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from synergy_core.model.snapshot import HEAVIEST, LIGHTEST
from synergy_simulator.inputs.errors import InputError, InputLocation
from synergy_simulator.inputs.table import Row, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceJob:
    """A job as a trace gives it. `steps` or `duration_s` is there; `steps` counts where both are."""

    name: str
    arrival_s: float
    gpus: int
    model: str | None
    """None if the trace does not say: a model is drawn from the workload split."""
    steps: int | None = None
    duration_s: float | None = None
    """Seconds at the GPU-proportional share of the reference GPU type."""
    tenant: str = ""
    weight: float = 1.0
    priority: int = 0
    """The value of its PriorityClass."""
    slo_s: float | None = None
    """Seconds after its arrival by which it should be done."""
    batch_size: int | None = None
    skew: float = 0.1
    model_bytes: int | None = None
    """What all-reduce training sends in a step."""
    spread_speed: float | None = None
    """Part of its speed that is left on more nodes than it must have; None: as `model_bytes` and the link determine."""
    checkpoint_bytes: int = 0
    """What a preemption has to write and to read."""
    place: InputLocation
    """Its position, for errors."""


_NATIVE = ("job_id", "arrival_s", "gpus", "model", "steps")
_NATIVE_OPTIONAL = (
    *("duration_s", "tenant", "weight", "slo_s", "batch_size"),
    *("skew", "model_bytes", "spread_speed", "checkpoint_bytes", "priority"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SimulatorTable:
    """The table of a paper's simulator: its columns, and which of them are what."""

    columns: Sequence[str]
    arrival: str = "arrival_s"
    gpus: str
    model: str
    steps: str
    duration: str
    weight: str | None = None

    def read(self, rows: list[Row]) -> list[TraceJob]:
        return [self._job(row) for row in rows]

    def _job(self, row: Row) -> TraceJob:
        return TraceJob(
            name=row.text("job_id"),
            arrival_s=row.number(self.arrival, least=0),
            gpus=row.count(self.gpus),
            model=row.text(self.model),
            steps=row.count(self.steps),
            duration_s=row.number(self.duration, above=0),
            weight=1.0 if self.weight is None else _weight(row, self.weight),
            place=_at(row),
        )


_SYNERGY = _SimulatorTable(
    columns=("job_id", "arrival_s", "model", "gpus", "total_iterations", "fair_iter_s", "fair_duration_s"),
    gpus="gpus",
    model="model",
    steps="total_iterations",
    duration="fair_duration_s",  # at the GPU-proportional share
)
_GAVEL = _SimulatorTable(
    columns=("job_id", "arrival_s", "job_type", "scale_factor", "total_steps", "duration_v100_s", "priority_weight"),
    gpus="scale_factor",
    model="job_type",
    steps="total_steps",
    duration="duration_v100_s",
    weight="priority_weight",
)
_TIRESIAS = _SimulatorTable(
    columns=("job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration", "interval"),
    arrival="submit_time",
    gpus="num_gpu",
    model="model_name",
    steps="iterations",
    duration="duration",
)
_GAVEL_PHYSICAL = (
    "job_type",
    "command",
    "working_directory",
    "steps_argument",
    "needs_data",
    "total_steps",
    "scale_factor",
    "weight",
    "slo",
    "arrival_s",
)
"""The traces of the Gavel authors' physical cluster: files `.trace`, with tabs and without a header."""
_PHILLY = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")


def read_trace(path: Path) -> list[TraceJob]:
    """The jobs of a trace by arrival, then in the order of the file. Raises InputError."""
    return _jobs(path, Table(path, _GAVEL_PHYSICAL if path.suffix == ".trace" else None))


def trace_of(rows: Sequence[Mapping[str, object]]) -> list[TraceJob]:
    """The jobs of a trace in memory: rows with the columns of the native table. Raises InputError by line.

    None and NaN mean that a value is not given.
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)
    path = Path("trace")
    return _jobs(path, Table(path, text=text.getvalue()))


def _cell(value: object) -> str:
    if value is None or value != value:  # noqa: PLR0124  NaN alone is unlike itself
        return ""
    number = value.item() if hasattr(value, "item") else value  # numpy's numbers are written otherwise
    return repr(number) if isinstance(number, float) else str(number)


def _jobs(path: Path, table: Table) -> list[TraceJob]:
    columns, read = _format_of(table)
    if columns is _NATIVE:
        derived = "duration_s" in table.columns
        table.require([c for c in _NATIVE if c != "steps" or not derived], (*_NATIVE, *_NATIVE_OPTIONAL))
    else:
        table.require(columns, columns)
    jobs = read(list(table.rows()))
    if not jobs:
        raise InputError(InputLocation(str(path)), "has no jobs; give at least one line")
    _unique(jobs)
    return sorted(jobs, key=lambda job: job.arrival_s)


def _format_of(table: Table) -> tuple[Sequence[str], Callable[[list[Row]], list[TraceJob]]]:
    """The format by a column that only it has; the native one where none is."""
    for mark, columns, read in (
        ("working_directory", _GAVEL_PHYSICAL, _gavel_physical),
        ("total_iterations", _SYNERGY.columns, _SYNERGY.read),
        ("scale_factor", _GAVEL.columns, _GAVEL.read),
        ("submit_time", _TIRESIAS.columns, _TIRESIAS.read),
        ("gpu_time", _PHILLY, _philly),
    ):
        if mark in table.columns:
            return columns, read
    return _NATIVE, _native


def _unique(jobs: Sequence[TraceJob]) -> None:
    first: dict[str, TraceJob] = {}
    for job in jobs:
        if first.setdefault(job.name, job) is not job:
            problem = f"{job.name!r} is also on line {first[job.name].place.line}; give each job its own"
            raise InputError(InputLocation(job.place.file, job.place.line, "job_id"), problem)


def _at(row: Row) -> InputLocation:
    return InputLocation(row.file, row.line)


def _native(rows: list[Row]) -> list[TraceJob]:
    return [_native_job(row) for row in rows]


def _native_job(row: Row) -> TraceJob:
    if not row.has("steps") and not row.has("duration_s"):
        raise row.bad("steps", "is empty, and so is duration_s; give one of them")
    derived = row.has("duration_s")
    return TraceJob(
        name=row.text("job_id"),
        arrival_s=row.number("arrival_s", least=0),
        gpus=row.count("gpus"),
        model=row.text("model"),
        steps=row.count("steps") if row.has("steps") and not derived else None,
        duration_s=row.number("duration_s", above=0) if derived else None,
        tenant=row.values.get("tenant", ""),
        weight=_weight(row, "weight") if row.has("weight") else 1.0,
        priority=_priority(row) if row.has("priority") else 0,
        slo_s=row.number("slo_s", above=0) if row.has("slo_s") else None,
        batch_size=row.count("batch_size") if row.has("batch_size") else None,
        skew=row.number("skew", least=0) if row.has("skew") else 0.1,
        model_bytes=row.count("model_bytes") if row.has("model_bytes") else None,
        spread_speed=_part(row, "spread_speed") if row.has("spread_speed") else None,
        checkpoint_bytes=row.count("checkpoint_bytes", least=0) if row.has("checkpoint_bytes") else 0,
        place=_at(row),
    )


def _weight(row: Row, column: str) -> float:
    weight = row.number(column, least=LIGHTEST)
    if weight > HEAVIEST:
        raise row.bad(column, f"must be at most {HEAVIEST:g}, is {row.text(column)}")
    return weight


def _priority(row: Row) -> int:
    priority = row.count("priority", least=-(1 << 31))
    if priority >= 1 << 31:
        raise row.bad("priority", f"must be below {1 << 31}, is {row.text('priority')}")
    return priority


def _part(row: Row, column: str) -> float:
    part = row.number(column, above=0)
    if part > 1:
        raise row.bad(column, f"must be at most 1, is {row.text(column)}")
    return part


def _gavel_physical(rows: list[Row]) -> list[TraceJob]:
    """Jobs are called by their lines; a negative SLO is none."""
    for row in rows:
        if row.number("slo") == 0:
            raise row.bad("slo", "must be seconds above 0, or negative for none, is 0")
    return [
        TraceJob(
            name=f"{row.line}",
            arrival_s=row.number("arrival_s", least=0),
            gpus=row.count("scale_factor"),
            model=row.text("job_type"),
            steps=row.count("total_steps"),
            weight=_weight(row, "weight"),
            slo_s=row.number("slo") if row.number("slo") > 0 else None,
            place=_at(row),
        )
        for row in rows
    ]


def _philly(rows: list[Row]) -> list[TraceJob]:
    """Microsoft's Philly table: the first job arrives at 0; jobs that asked for no GPU or did not run are left out."""
    dated = [
        (_time(row), row) for row in rows if row.count("num_gpus", least=0) > 0 and row.number("duration", least=0) > 0
    ]
    start = min((moment for moment, _ in dated), default=0.0)
    return [
        TraceJob(
            name=f"philly-{row.line}",
            arrival_s=moment - start,
            gpus=row.count("num_gpus"),
            model=None,
            duration_s=row.number("duration", above=0),
            tenant=row.values["cluster"],
            place=_at(row),
        )
        for moment, row in dated
    ]


def _time(row: Row) -> float:
    text = row.text("timestamp")
    try:
        return datetime.fromisoformat(text + "+00:00").timestamp()
    except ValueError:
        raise row.bad("timestamp", f"must be a time like 2017-10-09 07:01:55, is {text!r}") from None
