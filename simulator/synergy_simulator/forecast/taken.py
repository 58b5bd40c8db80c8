"""Snapshots of a simulated cluster, with everything that a forecast needs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from math import inf
from typing import Any

from synergy_core.model.config.format import OF_THE_SIMULATOR, config_document
from synergy_core.model.snapshot import Job, PastJob, Profile, Snapshot
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.run import Run
from synergy_simulator.engine.stops import Stops


def snapshots_at(moments: Sequence[float], options: Options, take: Callable[[float, Snapshot], None]) -> Stops:
    """Stops that pass on a complete snapshot at each of the moments, in order."""

    def look(moment: float, snapshot: Snapshot, runs: Sequence[Run]) -> None:
        take(moment, taken(snapshot, runs, options))

    return Stops(tuple(sorted(moments)), look)


def taken(snapshot: Snapshot, runs: Sequence[Run], options: Options) -> Snapshot:
    """The snapshot with frozen jobs, exact progress, the past jobs and the options of the simulation."""
    by_name = {run.task.name: run for run in runs}
    return replace(
        snapshot,
        jobs=tuple(_frozen(job, by_name[job.name], snapshot.now) for job in snapshot.jobs),
        history=tuple(_past(run) for run in runs),
        model_profiles=_profiles(runs),
        config={**config_document(options.plan), **simulated(options)},
    )


def simulated(options: Options) -> dict[str, Any]:
    """The simulator's own options that differ from their defaults."""
    usual = Options()
    return {name: getattr(options, name) for name in OF_THE_SIMULATOR if getattr(options, name) != getattr(usual, name)}


def _frozen(job: Job, run: Run, now: float) -> Job:
    values = {one.name: getattr(job, one.name) for one in fields(Job)}
    resumes = run.steps_from if run.running and now < run.steps_from < inf else None
    values |= {
        "received_s": dict(job.received_s),
        "received_spread_s": dict(job.received_spread_s),
        **_left(job, run),
        "resumes_s": resumes,
    }
    return Job(**values)


def _left(job: Job, run: Run) -> dict[str, float | None]:
    left = max(0.0, run.left)
    if run.timed_s is not None:
        return {"steps_left": left} if run.profiling_s else {"seconds_left": left}
    return {"exact_steps": run.task.steps if run.task.steps != job.steps_total else None, "steps_left": left}


def _past(run: Run) -> PastJob:
    task, steps = run.task, None if run.timed_s is not None else run.task.steps
    return PastJob(arrival_s=task.arrival_s, gpus=task.gpus, model=task.model, steps=steps, finish_s=run.finish_s)


def _profiles(runs: Sequence[Run]) -> dict[str, dict[str, Mapping[str, Profile]]]:
    found: dict[str, dict[str, Mapping[str, Profile]]] = {}
    for run in runs:
        found.setdefault(run.task.model, {})[str(run.task.gpus)] = run.task.profiles
    return found
