"""Offers jobs one after the other to the clusters where they start soonest. Pure: it simulates each cluster's future.

No further arrivals are drawn: they are as unknown in one cluster as in the other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final

from synergy_clusters.choice import Prospect, soonest, worth_moving
from synergy_core.collector import collector_paused
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import FieldError, Job, Profile, Snapshot
from synergy_simulator.forecast.forecast import Forecaster
from synergy_simulator.forecast.options import options_of_snapshot

_SOME: Final = Profile(cpu_millis=(1000,), memory_bytes=(1 << 30,), steps_per_s=((1.0,),))


@dataclass(frozen=True, slots=True)
class Asked:
    """A job of the hub: as each cluster's planner would see it, and the cluster in which it waits now, if any."""

    name: str
    seen_as: Mapping[str, Job]
    waits_in: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """The clusters by name, and the jobs in the order in which they are offered."""

    clusters: Mapping[str, tuple[Snapshot, PlanConfig]]
    jobs: Sequence[Asked]
    now: float


@dataclass(frozen=True, slots=True)
class Placed:
    """The cluster for a job; None: it starts in none. `problems` say why it starts not in a cluster. `reached` is false
    if there was no time to forecast it."""

    best: Prospect | None
    problems: Mapping[str, str] = field(default_factory=dict)
    reached: bool = True


def place(question: Question, go_on: Callable[[], bool] = lambda: True) -> dict[str, Placed]:
    """The cluster for each job, by its name. A job counts as waiting in its cluster for those after it. No job is begun
    once `go_on` is false."""
    futures = dict(question.clusters)
    found: dict[str, Placed] = {}
    for asked in question.jobs:
        if not go_on():
            found[asked.name] = Placed(None, reached=False)
            continue
        placed = _place(asked, futures, question.now)
        found[asked.name] = placed
        if placed.best is not None and placed.best.cluster != asked.waits_in:
            snapshot, config = futures[placed.best.cluster]
            job = asked.seen_as[placed.best.cluster]
            future = replace(snapshot, jobs=(*snapshot.jobs, _with_some_speed(job, snapshot)))
            futures[placed.best.cluster] = future, config
    return found


def _place(asked: Asked, futures: Mapping[str, tuple[Snapshot, PlanConfig]], now: float) -> Placed:
    prospects: list[Prospect] = []
    problems: dict[str, str] = {}
    for cluster in sorted(futures):
        snapshot, config = futures[cluster]
        if cluster == asked.waits_in:
            added = snapshot if any(job.name == asked.name for job in snapshot.jobs) else None
        elif cluster in asked.seen_as:
            added = replace(snapshot, jobs=(*snapshot.jobs, _with_some_speed(asked.seen_as[cluster], snapshot)))
        else:
            added = None
        if added is None:
            continue
        try:
            one = _prospect(asked.name, cluster, added, config)
        except FieldError as error:
            problems[cluster] = str(error)
            continue
        if one is None:
            problems[cluster] = "no GPU type that the job may use has enough GPUs there, or its tenant may not use them"
        else:
            prospects.append(one)
    best = soonest(prospects)
    if asked.waits_in:
        present = next((one for one in prospects if one.cluster == asked.waits_in), None)
        best = best if worth_moving(present, best, now) else present
    return Placed(best, problems)


def _with_some_speed(job: Job, snapshot: Snapshot) -> Job:
    """The job, if it was never measured with a speed that is made up: without any it would never start. When it starts
    hardly depends on it."""
    if job.profiles:
        return job
    types = {node.gpu_type for node in snapshot.nodes if not job.gpu_types or node.gpu_type in job.gpu_types}
    return replace(job, profiles=dict.fromkeys(sorted(types), _SOME))


def _prospect(name: str, cluster: str, snapshot: Snapshot, config: PlanConfig) -> Prospect | None:
    """When the job starts and ends; None if it never starts."""
    forecaster = Forecaster(snapshot, options_of_snapshot(snapshot, config), ())
    with collector_paused():
        start, finish = forecaster.alone[name]
    return Prospect(start, finish, cluster) if start < inf else None
