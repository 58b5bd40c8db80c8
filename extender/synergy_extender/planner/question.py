"""What goes between the extender and its planner's process. Who only asks need not load what plans."""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter

from synergy_core.model import snapshot as core
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_extender.snapshot.sent_jobs import SentJobs, received, sent
from synergy_extender.snapshot.times import Clock, Clocks, differ_in_times_only

LENGTH = struct.Struct("!Q")
PROCESSES_VARIABLE = "SYNERGY_PLANNER_PROCESSES"
"""In how many processes a plan may be made; the extender checks it at its start."""


@dataclass(frozen=True)
class Planned:
    """A plan and how many seconds `plan()` took."""

    plan: Plan
    seconds: float


@dataclass(frozen=True)
class Answer:
    """A plan without the places of running jobs that stay as they are."""

    plan: Plan
    ended: tuple[str, ...]
    """Running jobs that have no place in it."""
    seconds: float


@dataclass(frozen=True)
class Question:
    """A snapshot as what has changed since the one before, which the planner's process has kept.

    `names` are the jobs in order; `jobs` has those that changed, `clocks` the clocks that did. `nodes` says whether the
    snapshot has its nodes: else they are as before. `solve_s` is how many seconds the plan may wait for a new
    allocation.
    """

    snapshot: core.Snapshot
    """Without its jobs."""
    config: PlanConfig
    names: tuple[str, ...]
    jobs: SentJobs
    clocks: Mapping[str, Clock | None]
    nodes: bool
    solve_s: float


@dataclass(frozen=True)
class Asked:
    """What the planner's process has seen: a snapshot, of which each job has the times of some earlier moment, and the
    clocks that tell those of its own."""

    base: core.Snapshot
    clocks: Clocks


def question_after(before: Asked | None, asked: Asked, config: PlanConfig, solve_s: float) -> Question:
    """The question about a snapshot to a process that has seen the one `before`, or none."""
    known = {job.name: job for job in before.base.jobs} if before is not None else {}
    earlier_clocks = before.clocks if before is not None else {}
    jobs: list[core.Job] = []
    clocks: dict[str, Clock | None] = {}
    for job in asked.base.jobs:
        name = job.name
        earlier, clock = known.get(name), asked.clocks.get(name)
        told = earlier_clocks.get(name)
        if earlier is None or not _tells_all(told, clock, earlier, job):
            jobs.append(job)
            clocks[name] = clock
        elif clock is not told and clock != told:
            clocks[name] = clock
    snapshot = asked.base
    nodes = before is None or before.base.nodes != snapshot.nodes
    light = replace(snapshot, jobs=(), nodes=snapshot.nodes if nodes else ())
    names = tuple([job.name for job in snapshot.jobs])
    return Question(light, config, names, sent(jobs), clocks, nodes, solve_s)


def _tells_all(told: Clock | None, clock: Clock | None, earlier: core.Job, job: core.Job) -> bool:
    """Whether who knows the job as it was `earlier` needs no more than the clock to know it as it is now."""
    if clock is None:  # a job that had one is known with the times of some moment
        return told is None and (earlier is job or earlier == job)
    return earlier is job or differ_in_times_only(earlier, job)


def asked_after(before: Asked | None, question: Question) -> Asked:
    """What the question is about."""
    known = {job.name: job for job in before.base.jobs} if before is not None else {}
    known |= {job.name: job for job in received(question.jobs)}
    clocks: dict[str, Clock | None] = {**(before.clocks if before is not None else {}), **question.clocks}
    nodes = question.snapshot.nodes if question.nodes or before is None else before.base.nodes
    base = replace(question.snapshot, jobs=tuple([known[name] for name in question.names]), nodes=nodes)
    return Asked(base, {name: clock for name in question.names if (clock := clocks.get(name)) is not None})


def answer_of(planned: Planned, jobs: Iterable[core.Job]) -> Answer:
    """What is sent of a plan for these jobs."""
    held = {job.name: job.running for job in jobs if job.running is not None}
    given = planned.plan.allocations
    changed = [one for one in given if (now := held.get(one.job)) is not one and now != one]
    ended = held.keys() - {one.job for one in given}
    return Answer(replace(planned.plan, allocations=tuple(changed)), tuple(sorted(ended)), planned.seconds)


def planned_of(answer: Answer, jobs: Iterable[core.Job]) -> Planned:
    """The whole plan for these jobs. Places that stay as they are, are the same objects."""
    changed, ended = {one.job for one in answer.plan.allocations}, set(answer.ended)
    stay = [
        job.running for job in jobs if job.running is not None and job.name not in changed and job.name not in ended
    ]
    allocations = sorted((*answer.plan.allocations, *stay), key=attrgetter("job"))
    return Planned(replace(answer.plan, allocations=tuple(allocations)), answer.seconds)
