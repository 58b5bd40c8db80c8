"""Problems and solutions as JSON. Unknown fields and bad values are refused with one line that names the field."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from synergy_core.model.arrays import Floats
from synergy_core.model.snapshot import FieldError, Tenant, Weight, check_speed
from synergy_core.model.snapshot_format import SnapshotError, one_line
from synergy_core.policies.allocation.problem import (
    AllocationMatrix,
    Problem,
    check,
    effective_throughput,
    type_of,
)

_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
_Name = Annotated[str, Field(min_length=1)]
_Most = Annotated[float, Field(ge=-1e15, le=1e15)]
_Speeds = dict[_Name, _Most]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    id: _Name
    throughputs: _Speeds
    scale_factor: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    weight: Weight = 1.0
    steps_remaining: _Most | None = None
    time_since_start: _Most = 0.0
    isolated_time: _Most | None = None
    arrival: _Most = 0.0
    slo_s: _Most | None = None
    tenant: _Name | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    ids: Annotated[list[_Name], Field(min_length=2, max_length=2)]
    throughputs: dict[_Name, Annotated[list[_Most], Field(min_length=2, max_length=2)]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tenant:
    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    name: _Name
    weight: Weight = 1.0
    policy: Literal["fairness", "fifo"] = "fairness"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    workers: dict[_Name, Annotated[int, Field(ge=0, le=1_000_000_000)]]
    jobs: list[_Job]
    costs_per_hour: _Speeds = field(default_factory=dict)
    pairs: list[_Pair] = field(default_factory=list)
    tenants: list[_Tenant] = field(default_factory=list)


_DOCUMENT = TypeAdapter(_Document)


def parse_problem(text: str | bytes, *, seed: int = 0) -> Problem:
    """Problem from its JSON form; raises SnapshotError naming the first bad field.

    A worker type that a job's throughputs do not name is one where it is never placed, as with 0. Throughputs may name
    `TYPE_unconsolidated` beside `TYPE`: the speed with workers on servers of their own, which takes workers of TYPE.
    """
    try:
        document = _DOCUMENT.validate_json(text)
    except ValidationError as error:
        raise SnapshotError(one_line(error.errors()[0], whole="problem")) from None
    try:
        problem = _problem(document, seed)
        check(problem)
    except FieldError as error:
        raise SnapshotError(str(error)) from error
    return problem


def allocation_document(problem: Problem, allocation: AllocationMatrix, *, seconds: float) -> dict[str, Any]:
    """The JSON form of an allocation; `seconds` is how long solving took, measured by the caller."""
    ids = [[job] for job in problem.jobs] + [[problem.jobs[a], problem.jobs[b]] for a, b in problem.pairs.tolist()]
    speeds = effective_throughput(problem, allocation.x).tolist()
    document = {
        "allocation": [
            {"ids": row_ids, "x": dict(zip(problem.columns, row, strict=True))}
            for row_ids, row in zip(ids, allocation.x.tolist(), strict=True)
        ],
        "effective_throughput": dict(zip(problem.jobs, speeds, strict=True)),
        "objective": allocation.objective if math.isfinite(allocation.objective) else None,
        "status": allocation.status,
        "solver": allocation.solver,
        "seconds": seconds,
        "normalisation": allocation.normalisation,
    }
    return {**document, "note": allocation.note} if allocation.note else document


def _problem(document: _Document, seed: int) -> Problem:
    types = tuple(document.workers)
    jobs, count = document.jobs, len(document.jobs)
    index = _index([job.id for job in jobs], "jobs", "id")
    tenants = _index([tenant.name for tenant in document.tenants], "tenants", "name")
    spread = sorted({name for job in jobs for name in job.throughputs} - set(types))
    columns = (*types, *(name for name in spread if type_of(name) in types))
    for name in set(document.costs_per_hour) - set(types):
        raise FieldError(f"costs_per_hour.{name}", "is not in workers; add it there or remove it here")
    return Problem(
        types=types,
        workers=np.array(list(document.workers.values()), dtype=float),
        columns=columns,
        column_type=np.array([types.index(name if name in types else type_of(name)) for name in columns]),
        jobs=tuple(index),
        throughputs=_throughputs([job.throughputs for job in jobs], columns, "jobs").reshape(count, len(columns)),
        scale=np.array([job.scale_factor for job in jobs], dtype=float),
        weight=np.array([job.weight for job in jobs]),
        steps=np.array([math.nan if job.steps_remaining is None else job.steps_remaining for job in jobs]),
        elapsed=np.array([job.time_since_start for job in jobs]),
        isolated_elapsed=np.array(
            [job.time_since_start if job.isolated_time is None else job.isolated_time for job in jobs]
        ),
        arrival=np.array([job.arrival for job in jobs]),
        slo=np.array([math.inf if job.slo_s is None else job.slo_s for job in jobs]),
        tenant=np.array([_tenant(job, place, tenants) for place, job in enumerate(jobs)], dtype=np.int64),
        cost=np.array([document.costs_per_hour.get(name, math.nan) for name in types]),
        pairs=np.array(
            [_members(pair, place, index) for place, pair in enumerate(document.pairs)], dtype=np.int64
        ).reshape(-1, 2),
        pair_throughputs=_shared(document.pairs, columns),
        tenants=tuple(Tenant(tenant.name, tenant.weight, tenant.policy) for tenant in document.tenants),
        seed=seed,
    )


def _index(names: Sequence[str], where: str, what: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for place, name in enumerate(names):
        if name in found:
            raise FieldError(f"{where}[{place}].{what}", f"{name!r} occurs twice; give each its own")
        found[name] = place
    return found


def _throughputs(given: Sequence[dict[str, float]], columns: tuple[str, ...], where: str) -> Floats:
    known = set(columns)
    for place, speeds in enumerate(given):
        for name in speeds:
            if name not in known:
                raise FieldError(
                    f"{where}[{place}].throughputs.{name}", "is not in workers; add it there or remove it here"
                )
            check_speed(speeds[name], f"{where}[{place}].throughputs.{name}")
    return np.array([[speeds.get(name, 0.0) for name in columns] for speeds in given], dtype=float)


def _shared(pairs: Sequence[_Pair], columns: tuple[str, ...]) -> Floats:
    halves = [
        _throughputs([{name: two[half] for name, two in pair.throughputs.items()} for pair in pairs], columns, "pairs")
        for half in (0, 1)
    ]
    return np.stack([half.reshape(len(pairs), len(columns)) for half in halves], axis=2)


def _members(pair: _Pair, place: int, index: dict[str, int]) -> list[int]:
    for end, name in enumerate(pair.ids):
        if name not in index:
            raise FieldError(f"pairs[{place}].ids[{end}]", f"{name!r} is no job's id; correct it or remove the pair")
    if pair.ids[0] == pair.ids[1]:
        raise FieldError(f"pairs[{place}].ids", "names one job twice; a pair is of two jobs")
    return [index[name] for name in pair.ids]


def _tenant(job: _Job, place: int, tenants: dict[str, int]) -> int:
    if job.tenant is None:
        return -1
    if job.tenant not in tenants:
        raise FieldError(
            f"jobs[{place}].tenant", f"{job.tenant!r} is not in tenants; add it there or leave it out here"
        )
    return tenants[job.tenant]
