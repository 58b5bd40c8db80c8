"""The fields of a job that change while it waits and runs, apart from those that last."""

from dataclasses import fields
from operator import attrgetter
from typing import Final

from synergy_core.model.snapshot.job import Job

PASSING: Final = frozenset(
    {
        "arrival_s",
        "steps_done",
        "steps_left",
        "seconds_left",
        "attained_gpu_s",
        "waiting_s",
        "started_s",
        "promoted_gpu_s",
        "promoted_waiting_s",
        "run_started_s",
        "resumes_s",
        "isolated_s",
        "isolated_steps",
        "received_s",
        "received_spread_s",
        "preempted_s",
    }
)
"""They decide when a job is due, never where it fits or what it gets there."""
_lasting = attrgetter(*(one.name for one in fields(Job) if one.name not in PASSING))


def lasts(before: Job, now: Job) -> bool:
    """Whether only passing fields differ. Quick where the others are the same objects."""
    return now is before or bool(_lasting(before) == _lasting(now))
