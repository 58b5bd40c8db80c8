"""What goes between the extender and its planner's process. Who only asks need not load what plans."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace

from synergy_core.model import snapshot as core
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_extender.snapshot.times import Times, differ_in_times_only, times_of, with_times

LENGTH = struct.Struct("!Q")
PROCESSES_VARIABLE = "SYNERGY_PLANNER_PROCESSES"
"""In how many processes a plan may be made; the extender checks it at its start."""


@dataclass(frozen=True)
class Planned:
    """A plan and how many seconds `plan()` took."""

    plan: Plan
    seconds: float


@dataclass(frozen=True)
class Question:
    """A snapshot as what has changed since the one before, which the planner's process has kept.

    `names` are the jobs in order; `jobs` has those that changed, and `times` the times of others. `nodes` says whether
    the snapshot has its nodes: else they are as before. `solve_s` is how many seconds the plan may wait for a new
    allocation.
    """

    snapshot: core.Snapshot
    """Without its jobs."""
    config: PlanConfig
    names: tuple[str, ...]
    jobs: tuple[core.Job, ...]
    times: Mapping[str, Times]
    nodes: bool
    solve_s: float


def question_after(
    before: core.Snapshot | None, snapshot: core.Snapshot, config: PlanConfig, solve_s: float
) -> Question:
    """The question about a snapshot to a process that has seen the one `before`, or none."""
    known = {job.name: job for job in before.jobs} if before is not None else {}
    jobs: list[core.Job] = []
    times: dict[str, Times] = {}
    for job in snapshot.jobs:
        earlier = known.get(job.name)
        if earlier is None or not (earlier is job or differ_in_times_only(earlier, job)):
            jobs.append(job)
        elif earlier is not job:
            times[job.name] = times_of(job)
    nodes = before is None or before.nodes != snapshot.nodes
    light = replace(snapshot, jobs=(), nodes=snapshot.nodes if nodes else ())
    names = tuple(job.name for job in snapshot.jobs)
    return Question(light, config, names, tuple(jobs), times, nodes, solve_s)


def snapshot_after(before: core.Snapshot | None, question: Question) -> core.Snapshot:
    """The snapshot that the question is about."""
    known = {job.name: job for job in before.jobs} if before is not None else {}
    known |= {job.name: job for job in question.jobs}
    jobs = []
    for name in question.names:
        times = question.times.get(name)
        jobs.append(known[name] if times is None else with_times(known[name], times))
    nodes = question.snapshot.nodes if question.nodes or before is None else before.nodes
    return replace(question.snapshot, jobs=tuple(jobs), nodes=nodes)
