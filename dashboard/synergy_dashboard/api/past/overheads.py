"""How long runs held their GPUs without a step, from the history. Pure."""

from collections.abc import Collection, Iterable, Sequence
from statistics import fmean

from synergy_dashboard.facts import JobFact, RunFact


def overheads(jobs: Iterable[tuple[JobFact, Sequence[RunFact]]], resized: Collection[str]) -> tuple[float, float]:
    """Seconds that a job held its GPUs without a step when it began, and each time it began again; 0 where unknown.

    That is what the runs of a job that succeeded took beyond its steps at the planned speed: to start, to save and to
    end. If no job tells that, because runs were resized or had different speeds, the time from the grant of GPUs until
    the workers ran stands for it. `resized` are the uids of jobs of which a run was resized.
    """
    once: list[float] = []
    more: list[tuple[int, float]] = []
    first: list[float] = []
    later: list[float] = []
    for job, runs in jobs:
        begins = [one.started_s - one.granted_s for one in runs if one.started_s is not None]
        first += begins[:1]
        later += begins[1:]
        extra = _extra_s(job, runs) if job.uid not in resized else None
        if extra is not None and len(runs) == 1:
            once.append(extra)
        elif extra is not None:
            more.append((len(runs) - 1, extra))
    start = max(0.0, _mean(once or first))
    again = [(extra - start) / times for times, extra in more]
    return start, max(0.0, _mean(again or later))


def _extra_s(job: JobFact, runs: Sequence[RunFact]) -> float | None:
    """What the runs took beyond the job's steps; None if it is not known."""
    speeds = {run.steps_per_s for run in runs}
    if job.phase != "Succeeded" or len(speeds) != 1 or not all(run.seen for run in runs):
        return None
    (speed,) = speeds
    if speed <= 0 or any(run.ended_s is None for run in runs):
        return None
    return sum((run.ended_s or 0.0) - run.granted_s for run in runs) - job.steps / speed


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0
