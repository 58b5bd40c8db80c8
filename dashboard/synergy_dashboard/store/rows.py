"""Facts as rows of the tables, and back."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any, TypeVar

from sqlalchemy.engine import RowMapping

from synergy_dashboard.facts import JobFact, ResizeFact, RunFact, Sample, Share

Row = dict[str, Any]
Stored = RowMapping | Mapping[str, Any]
_Fact = TypeVar("_Fact")
_NO_TEXT = "\x00"
_INSTEAD = "�"
"""PostgreSQL refuses text with a zero character, which a message of a container may have."""


def row_of(fact: Any) -> Row:
    """A row of a fact of any kind."""
    return {one.name: _stored(getattr(fact, one.name)) for one in fields(fact)}


def _stored(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace(_NO_TEXT, _INSTEAD)
    if isinstance(value, tuple):
        return json.dumps([asdict(one) if isinstance(one, Share) else one for one in value], separators=(",", ":"))
    return value


def plain(kind: type[_Fact], row: Stored) -> _Fact:
    """A fact whose fields are stored in columns unchanged."""
    return kind(**{one.name: row[one.name] for one in fields(kind)})  # type: ignore[arg-type]


def job_of(row: Stored) -> JobFact:
    """The job of a row."""
    values = {one.name: row[one.name] for one in fields(JobFact)}
    return JobFact(**{**values, "gpu_types": tuple(json.loads(values["gpu_types"]))})


def run_of(row: Stored) -> RunFact:
    """The run of a row."""
    values = {one.name: row[one.name] for one in fields(RunFact)}
    return RunFact(
        **{
            **values,
            "shares": _shares(values["shares"]),
            "partners": tuple(json.loads(values["partners"])),
            "seen": bool(values["seen"]),
        }
    )


def sample_of(row: Stored) -> Sample:
    """The sample of a row."""
    values = {one.name: row[one.name] for one in fields(Sample)}
    metrics: Iterable[tuple[str, float]] = json.loads(values["metrics"])
    return Sample(**{**values, "metrics": tuple((name, value) for name, value in metrics)})


def resize_of(row: Stored) -> ResizeFact:
    """The resize of a row."""
    return ResizeFact(uid=row["uid"], run=row["run"], at_s=row["at_s"], shares=_shares(row["shares"]))


def _shares(text: str) -> tuple[Share, ...]:
    told: Iterable[Mapping[str, Any]] = json.loads(text)
    return tuple(Share(**one) for one in told)
