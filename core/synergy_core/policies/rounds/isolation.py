"""The time that a job's progress would have taken in isolation (Gavel, section 4.2: t_m^isolated).

In isolation a job has 1/n of the cluster. n changes while the job trains, and so does what the cluster makes of 1/n. So
the time is an account that grows with the job's steps: each plan values the steps since the last entry at the isolated
throughput of that plan, and `Plan.isolated` is the new entry. The component that carries the plan out stores it in the
job (`Job.isolated_s`, `Job.isolated_steps`).

An entry is absolute: seconds, and the steps that they cover. An entry that is lost costs no progress: the next plan
values all steps since the older entry. An entry that is written twice says the same.

Without an entry all of the job's progress is valued at the present n.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from synergy_core.model.answer import IsolatedTime
from synergy_core.model.arrays import Floats
from synergy_core.model.snapshot import Job
from synergy_core.policies.allocation.problem import Problem
from synergy_core.policies.allocation.shares import isolated_throughput


def progress(jobs: Sequence[Job], speeds: Sequence[Mapping[str, float]]) -> Floats:
    """J: steps that each job has done. `speeds` are in steps per second, by GPU type.

    A job of unknown length that reports no steps has done what its time on each type is worth.
    """
    return np.array([_steps_done(job, speed) for job, speed in zip(jobs, speeds, strict=True)], dtype=float)


def _steps_done(job: Job, speeds: Mapping[str, float]) -> float:
    if job.steps_total is not None or job.steps_done:
        return float(job.steps_done)
    return sum(seconds * speeds.get(gpu_type, 0.0) for gpu_type, seconds in job.received_s.items())


def isolated_elapsed(jobs: Sequence[Job], done: Floats, problem: Problem) -> Floats:
    """J: t_m^isolated, seconds, of jobs that have done these steps."""
    entered = np.array([(job.isolated_s, job.isolated_steps) for job in jobs], dtype=float).reshape(-1, 2)
    since = np.maximum(0.0, done - entered[:, 1])
    with np.errstate(divide="ignore", invalid="ignore"):
        grown = np.where(since > 0.0, since / isolated_throughput(problem), 0.0)
    return np.asarray(entered[:, 0] + np.where(np.isfinite(grown), grown, 0.0))


def entries(jobs: Sequence[Job], done: Floats, elapsed: Floats) -> tuple[IsolatedTime, ...]:
    """The new entries of the jobs that have made progress since their last one, by name."""
    moved = (
        IsolatedTime(job.name, seconds=seconds, steps=steps)
        for job, steps, seconds in zip(jobs, done.tolist(), elapsed.tolist(), strict=True)
        if steps > job.isolated_steps
    )
    return tuple(sorted(moved, key=lambda one: one.job))
