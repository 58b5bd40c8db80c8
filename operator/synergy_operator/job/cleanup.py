"""Pods and Jobs of runs that have ended.

The ended pods of the last run stay until the next run starts, for their logs, if it succeeded or failed. A failure that
a partner on its GPU caused counts too. Finished profile Jobs stay for their own time to live.
"""

from synergy_api.names import ROLE_PROFILE
from synergy_api.parts.service import ServiceStatus
from synergy_api.reasons import Reason
from synergy_operator.actions import Action, Actions, DeleteJob
from synergy_operator.run.managed.follow import suspension
from synergy_operator.run.step import earliest, reason_of
from synergy_operator.run.take_down import pod_deletions
from synergy_operator.views.observed import Observed
from synergy_operator.views.pod import PodView


def leftovers(
    observed: Observed, service: ServiceStatus, open_run: int | None, now: float
) -> tuple[tuple[Action, ...], float | None]:
    """The deletions of pods and Jobs of ended runs, and the seconds until the next reconcile.

    Objects of a run later than the open one are not deleted. They mean that this copy of the job is outdated.
    """
    if observed.job.spec is not None and observed.job.spec.managed is not None:
        return (suspension(observed) if open_run is None else ()), None
    over = service.ended_run if open_run is None else max(service.ended_run, open_run - 1)
    kept = _kept_run(service) if open_run is None else None
    ended = {pod.batch_job for pod in observed.pods if pod.terminal}
    jobs = tuple(
        DeleteJob(job.name, job.uid)
        for job in observed.batch_jobs
        if job.run <= over and not job.finished and not job.deleting and job.name not in ended
    )
    pods, wait = pod_deletions(
        (pod for pod in observed.pods if pod.run <= over and not _kept(pod, kept)), observed, now
    )
    return (*jobs, *pods), earliest(wait)


def deleted_job(observed: Observed, now: float) -> Actions:
    """The deletions of everything that a deleted TrainingJob still holds.

    The garbage collector deletes the objects of a TrainingJob only once it is gone. Until then anybody's finalizer may
    keep it, for as long as they like, and its pods with it. A finished Job stays for its log.
    """
    if observed.job.spec is not None and observed.job.spec.managed is not None:
        return Actions(suspension(observed))
    jobs = tuple(DeleteJob(job.name, job.uid) for job in observed.batch_jobs if not job.finished and not job.deleting)
    pods, wait = pod_deletions((pod for pod in observed.pods if not pod.terminal), observed, now)
    return Actions((*jobs, *pods), wait)


def _kept_run(service: ServiceStatus) -> int | None:
    last = service.last
    kept = last is not None and (
        last.outcome in ("Failed", "Succeeded") or reason_of(last).reason is Reason.PARTNER_FAILED
    )
    return last.run if last is not None and kept else None


def _kept(pod: PodView, kept: int | None) -> bool:
    return pod.terminal and (pod.role == ROLE_PROFILE or pod.run == kept)
