"""When a job starts and ends: a simulation of the cluster from its state now."""

import time
from math import inf

from kube_synergy.forecast import Range, When
from kube_synergy.live.cluster import Cluster
from kube_synergy.live.present import NodesHiddenError, Present, look
from synergy_api.timestamps import parse_time
from synergy_simulator.forecast.forecast import Forecaster, JobForecast
from synergy_simulator.forecast.options import options_of_snapshot
from synergy_simulator.forecast.quantiles import Quantiles
from synergy_view.seen import SeenJob


async def job_and_cluster(cluster: Cluster, name: str, uid: str | None = None) -> tuple[SeenJob, Present | None]:
    """The job and the cluster around it; None where the user may not list nodes, and for a job in a worker cluster."""
    asked = await cluster.job(name, uid)
    if asked.is_elsewhere:
        return asked, None
    try:
        return asked, await look(cluster)
    except NodesHiddenError:
        return asked, None


def when(asked: SeenJob, present: Present, *, draws: int, seed: int, horizon_s: float | None) -> When:
    """Simulate the cluster from now on. Raises FieldError if the policy cannot be simulated."""
    snapshot, name = present.snapshot, asked.full_name
    if all(job.name != name for job in snapshot.jobs):
        reason = "Finished" if asked.finished else "Suspended" if asked.spec.suspend else "NotPlanned"
        return When(job=name, state=asked.phase, now=present.now, unknown=reason)
    found = Forecaster(snapshot, options_of_snapshot(snapshot), horizon_s=horizon_s).forecast(draws, seed)
    one = next(job for job in found.jobs if job.job == name)
    return _answer(one, present.now, found.draws)


def _answer(one: JobForecast, now: float, draws: int) -> When:
    if one.unknown is not None:
        return When(job=one.job, state=one.state, now=now, unknown=one.unknown, draws=draws)
    return When(
        job=one.job,
        state=one.state,
        now=now,
        draws=draws,
        start=_range(one.start),
        finish=_range(one.finish),
        start_without_arrivals=_finite(one.start_without_arrivals_s),
        finish_without_arrivals=_finite(one.finish_without_arrivals_s),
    )


def as_told(asked: SeenJob) -> When:
    """The estimate that the extender wrote into the job's status. Users without the right to list nodes get this
    answer, and those who ask about a job in a worker cluster."""
    now, entry = time.time(), asked.status.queue
    if entry is None or entry.estimated_start is None:
        reason = (
            "Finished"
            if asked.finished
            else "Suspended"
            if asked.spec.suspend
            else "NotTold"
            if asked.is_elsewhere
            else "Hidden"
        )
        return When(job=asked.full_name, state=asked.phase, now=now, unknown=reason, by="extender")
    by = entry.estimated_start_by
    start = Range(p10=None, p50=parse_time(entry.estimated_start), p90=None if by is None else parse_time(by))
    return When(job=asked.full_name, state="waiting", now=now, by="extender", start=start)


def _range(one: Quantiles) -> Range:
    return Range(p10=_finite(one.p10), p50=_finite(one.p50), p90=_finite(one.by))


def _finite(moment: float) -> float | None:
    return moment if moment < inf else None
