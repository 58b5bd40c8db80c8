"""The fields of the planner's jobs that change by themselves while time goes by, apart from all others."""

from dataclasses import fields
from operator import attrgetter
from typing import Any, Final

import msgspec

from synergy_core.model import snapshot as core


class Times(msgspec.Struct, frozen=True, array_like=True):
    """Those fields of one job."""

    attained_gpu_s: float
    waiting_s: float
    run_started_s: float | None
    received_s: dict[str, float]
    received_spread_s: dict[str, float]
    preempted_s: tuple[float, ...]


TIMED: Final = Times.__struct_fields__
_ALL: Final = tuple(one.name for one in fields(core.Job))
_LASTING: Final = tuple(name for name in _ALL if name not in TIMED)
_lasting = attrgetter(*_LASTING)
_timed = attrgetter(*TIMED)
_SETTERS: Final[tuple[Any, ...]] = tuple(getattr(core.Job, name).__set__ for name in _LASTING)
_TIMED_SETTERS: Final[tuple[Any, ...]] = tuple(getattr(core.Job, name).__set__ for name in TIMED)


def times_of(job: core.Job) -> Times:
    """The job's."""
    return Times(*_timed(job))


def differ_in_times_only(one: core.Job, other: core.Job) -> bool:
    """Whether all other fields are equal. It is quick if they are the same objects."""
    return bool(_lasting(one) == _lasting(other))


def with_times(job: core.Job, times: Times) -> core.Job:
    """The job at another moment: `dataclasses.replace` in a quarter of the time, for thousands of jobs in each plan.
    What was checked when the job was made holds for its other fields still."""
    made = object.__new__(core.Job)
    for put, value in zip(_SETTERS, _lasting(job), strict=True):
        put(made, value)
    for put, name in zip(_TIMED_SETTERS, TIMED, strict=True):
        put(made, getattr(times, name))
    return made
