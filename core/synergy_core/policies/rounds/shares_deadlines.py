"""Deadlines as the throughputs that an allocation must give (`min-cost-slo`).

A deadline counts as two rounds earlier than it is, or as now where that has passed, because rounds give what X says
only on average. A job that misses its deadline in any case asks for all its time on its fastest type, and comes after
all jobs that can keep theirs. Where not all deadlines can be kept, as many as possible are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from synergy_core.model.deadlines import late_alone
from synergy_core.model.snapshot import Job
from synergy_core.policies.allocation.agnostic import agnostic
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.deadlines import reached
from synergy_core.policies.allocation.problem import Problem
from synergy_core.policies.allocation.shares import fastest_throughput
from synergy_core.policies.queue import Queue

_ROUNDS_EARLY = 2
_LATE = 1e-3
"""Urgency of jobs that are late already, beside 1."""
_LESS = 1e-6
"""By this part less is asked for than is possible: a solver's tolerance."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """What rounds need to know of the deadlines."""

    colliding: tuple[str, ...] = ()
    """Jobs that would keep their deadlines if others had none."""
    pressed: frozenset[str] = frozenset()
    """Jobs without a round to lose: X gives them all their time, and they are served before all others."""


def with_deadlines(queue: Queue, jobs: Sequence[Job], problem: Problem, budget: Budget) -> tuple[Problem, Deadlines]:
    """The problem with deadlines that can all be kept, and what rounds need of them. Raises OutOfTimeError."""
    view = problem if queue.aware else agnostic(problem)
    fastest = fastest_throughput(view)
    asked, urgency = np.zeros(len(jobs)), np.ones(len(jobs))
    for index, job in enumerate(jobs):
        if job.deadline_s is None or not job.has_end or not any(queue.speeds(job).values()):
            continue
        left = job.deadline_s - queue.now
        if late_alone(job, queue.now, float(fastest[index])) is not None:
            asked[index], urgency[index] = fastest[index], _LATE
        else:
            spare = left - _ROUNDS_EARLY * queue.round_s
            needed = problem.steps[index] / spare if spare > 0.0 else inf
            asked[index] = min(needed, fastest[index])
    if not asked.any():
        return problem, Deadlines()
    part = reached(view, asked, urgency, budget)
    given = asked * part * (1.0 - _LESS)
    with np.errstate(divide="ignore"):
        slo = np.where(given > _LESS * fastest, problem.steps / given, np.inf)
    alive = urgency == 1.0
    short = np.flatnonzero((part < 1.0) & alive)
    pressed = np.flatnonzero((part == 1.0) & alive & (asked >= fastest * (1.0 - _LESS)))
    return replace(problem, slo=slo), Deadlines(
        colliding=tuple(jobs[index].name for index in short.tolist()),
        pressed=frozenset(jobs[index].name for index in pressed.tolist()),
    )
