"""What ends a profile run before its series is complete."""

from typing import Final

from synergy_api.quantity import format_bytes, format_cpu
from synergy_api.reasons import Finding, Reason, say
from synergy_operator.profile.harvest import result_of
from synergy_operator.profile.job import ATTEMPTS, is_unchanged
from synergy_operator.profile.open_series import OpenSeries
from synergy_operator.profile.points import jobs_of
from synergy_operator.profile.result import MeasurementFailure
from synergy_operator.run.follow import START_SECONDS
from synergy_operator.run.half_bound import BIND_SECONDS, unbound_reason
from synergy_operator.run.start_blocker import cannot_start, refused_pod_message, start_blocker
from synergy_operator.views.batch_job import BatchJobView, Target
from synergy_operator.views.pod import PodView
from synergy_operator.views.worker_state import WorkerState, worker_state

POD_SECONDS: Final = 60.0
"""How long the Job controller may take to create the pod of a profile Job."""


def failure_of(series: OpenSeries) -> Finding | None:
    """Why the profile has failed: a point failed as often as it may be tried.

    One failure is enough if sidecars keep the pod alive. The pod must be deleted then, and the evidence is lost with
    it.
    """
    attempts: dict[Target, list[tuple[BatchJobView, MeasurementFailure]]] = {}
    for job in filter(is_unchanged, series.jobs):
        result = result_of(job, series.pod_of(job))
        if isinstance(result, MeasurementFailure) and job.target.hit_rate is None:
            attempts.setdefault(job.target, []).append((job, result))
    kept = {pod.batch_job for pod in series.holding}
    for target, failures in sorted(attempts.items(), key=lambda item: (item[0].cpu_millis, item[0].repeat)):
        if len(failures) >= ATTEMPTS or any(job.name in kept for job, _ in failures):
            job, failure = failures[-1]
            memory = format_bytes(series.share.memory_bytes) if series.share else "its limit"
            facts = {
                "job": job.name,
                "cpu": format_cpu(target.cpu_millis),
                "problem": failure.problem,
                "memory": memory,
            }
            return say(failure.reason, **facts)
    return None


def changed_job(series: OpenSeries) -> Finding | None:
    """A Job whose annotations somebody has changed: what it measures is not known any more."""
    changed = next((job for job in series.jobs if not is_unchanged(job)), None)
    return None if changed is None else say(Reason.PROFILE_JOB_CHANGED, run=series.number, job=changed.name)


def loss_of(series: OpenSeries) -> Finding | None:
    """Why the run is given back before the series is complete: its pod is lost, missing, refused or not bound."""
    number, now = series.number, series.now
    # in a long series, Jobs that were read before are deleted by their TTL
    read = jobs_of(series.profile_state.profile.points)
    read |= {job.name for job in series.jobs if job.pair is not None and series.is_read(job)}
    for job in series.jobs:
        pod = series.pod_of(job)
        if job.name in read or result_of(job, pod) is not None:
            continue
        if pod is None and (job.finished or job.deleting):
            return say(Reason.WORKER_LOST, run=number, rank=0, problem=f"the pod of profile run {job.name} is gone")
        if pod is None and (message := refused_pod_message(job, series.observed)):
            return say(Reason.POD_REFUSED, run=number, problem=message)
        if pod is None and now >= job.created_at + POD_SECONDS:
            return say(Reason.PROFILE_POD_MISSING, run=number, job=job.name, seconds=int(POD_SECONDS))
        if pod is not None and not pod.node and now >= pod.created_at + BIND_SECONDS:
            return _not_bound(series, pod)
        if pod is not None and (problem := _pod_loss(pod)):
            return say(Reason.WORKER_LOST, run=number, rank=0, problem=problem)
    return None


def _not_bound(series: OpenSeries, pod: PodView) -> Finding:
    why = start_blocker(pod, series.observed)
    if why is not None and why.reason is Reason.VOLUME_NOT_MOUNTED:
        return why
    facts = {"rank": 0, "seconds": int(BIND_SECONDS), "problem": unbound_reason(pod)}
    return say(Reason.GANG_NOT_BOUND, run=series.number, **facts)


def _pod_loss(pod: PodView) -> str:
    if worker_state(pod) in (WorkerState.LOST, WorkerState.REFUSED):
        return pod.disruption or pod.message or pod.reason or f"pod {pod.name} was deleted"
    return ""


def stuck_start(series: OpenSeries) -> Finding | None:
    """Why a bound pod could not start in time."""
    for pod in series.holding:
        why = cannot_start(pod, series.observed)
        if why is not None and series.now >= pod.created_at + START_SECONDS:
            return why
    return None
