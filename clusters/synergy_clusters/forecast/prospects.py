"""Offers jobs one after the other to the clusters where they start soonest. Pure: it simulates each cluster's future.

No further arrivals are drawn: they are as unknown in one cluster as in the other.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
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
_NEVER: Final = (
    "by forecast it never starts there: no GPU type that it may use has enough GPUs with the CPU and memory that it "
    "asks for, its tenant may not use them, or jobs without an end hold them"
)
Told = Callable[[str, str], None]
"""Called with a job and a cluster."""


def _untold(_job: str, _cluster: str) -> None:
    """Tell nobody."""


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
    """The cluster for a job; None: it starts in none. Its start is infinite if it has the job without a forecast.
    `problems` say why it starts not in a cluster. `reached` is false if there was no time to forecast it."""

    best: Prospect | None
    problems: Mapping[str, str] = field(default_factory=dict)
    reached: bool = True


def place(
    question: Question, go_on: Callable[[], bool] = lambda: True, *, begins: Told = _untold, failed: Told = _untold
) -> Iterator[tuple[str, Placed]]:
    """The cluster for each job, after its name. A job counts as waiting in its cluster for those after it. No job is
    begun once `go_on` is false. `begins` is called before each forecast, and `failed` where it raised an exception."""
    futures = dict(question.clusters)
    for asked in question.jobs:
        if not go_on():
            yield asked.name, Placed(None, reached=False)
            continue
        placed = _place(asked, futures, question.now, begins=begins, failed=failed)
        if placed.best is not None:
            snapshot, config = futures[placed.best.cluster]
            futures[placed.best.cluster] = _with_job(asked, placed.best.cluster, snapshot) or snapshot, config
        yield asked.name, placed


def _place(
    asked: Asked, futures: Mapping[str, tuple[Snapshot, PlanConfig]], now: float, *, begins: Told, failed: Told
) -> Placed:
    prospects: list[Prospect] = []
    problems: dict[str, str] = {}
    unknown: set[str] = set()
    for cluster in sorted(futures):
        snapshot, config = futures[cluster]
        begins(asked.name, cluster)
        try:
            with_job = _with_job(asked, cluster, snapshot)
            if with_job is None:
                continue
            one = _prospect(asked.name, cluster, with_job, config)
        except Exception as error:  # noqa: BLE001 - other clusters may have the job, and other jobs this one
            problems[cluster] = str(error) if isinstance(error, FieldError) else f"its forecast failed: {error!r}"
            unknown.add(cluster)
            failed(asked.name, cluster)
            continue
        if one is None:
            problems[cluster] = _NEVER
        else:
            prospects.append(one)
    if asked.waits_in in unknown:
        return Placed(None, problems)  # it stays: it may start there soon
    best = soonest(prospects)
    if asked.waits_in:
        present = next((one for one in prospects if one.cluster == asked.waits_in), None)
        best = best if worth_moving(present, best, now) else present
    return Placed(best, problems)


def _with_job(asked: Asked, cluster: str, snapshot: Snapshot) -> Snapshot | None:
    """The cluster with the job in its queue; None if the job cannot be there."""
    if cluster == asked.waits_in:
        return snapshot if any(job.name == asked.name for job in snapshot.jobs) else None
    job = asked.seen_as.get(cluster)
    return None if job is None else replace(snapshot, jobs=(*snapshot.jobs, _with_some_speed(job, snapshot)))


def _with_some_speed(job: Job, snapshot: Snapshot) -> Job:
    """The job, if it was never measured with a speed that is made up: without any it would never start. When it starts
    hardly depends on it."""
    if job.profiles:
        return job
    types = {node.gpu_type for node in snapshot.nodes if not job.gpu_types or node.gpu_type in job.gpu_types}
    return replace(job, profiles=dict.fromkeys(sorted(types), _SOME))


def _prospect(name: str, cluster: str, snapshot: Snapshot, config: PlanConfig) -> Prospect | None:
    """When the job starts and ends; None if it never starts. Its end is infinite where it is unknown: its epochs
    have no known number of steps, or it waits to be measured."""
    forecaster = Forecaster(snapshot, options_of_snapshot(snapshot, config), (), starts_of=frozenset({name}))
    with collector_paused():
        start, finish = forecaster.alone[name]
    return Prospect(start, finish, cluster) if start < inf else None
