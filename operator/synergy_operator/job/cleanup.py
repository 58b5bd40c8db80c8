"""Pods and Jobs of runs that are over.

The ended pods of the last run that failed, also beside a partner, or succeeded stay, for their logs, until the next run
starts; finished profile Jobs stay for as long as their own time to live says.
"""

from synergy_api.names import ROLE_PROFILE
from synergy_api.reasons import Reason
from synergy_api.training_job import ServiceStatus
from synergy_operator.actions import Action, DeleteJob
from synergy_operator.run.step import earliest, reason_of
from synergy_operator.run.take_down import pod_deletions
from synergy_operator.views.observed import Observed
from synergy_operator.views.pod import PodView


def leftovers(
    observed: Observed, service: ServiceStatus, open_run: int | None, now: float
) -> tuple[tuple[Action, ...], float | None]:
    """What deletes the pods and Jobs of ended runs, and when to look again (seconds). What belongs to a run later than
    the open one is left alone: then this copy of the job is old."""
    over = service.ended_run if open_run is None else max(service.ended_run, open_run - 1)
    kept = _kept_run(service) if open_run is None else None
    ended = {pod.batch_job for pod in observed.pods if pod.terminal}
    jobs = tuple(
        DeleteJob(job.name, job.uid)
        for job in observed.batch_jobs
        if job.run <= over and not job.finished and not job.deleting and job.name not in ended
    )
    pods, wait = pod_deletions(
        (pod for pod in observed.pods if pod.run <= over and not _stays(pod, kept)), observed, now
    )
    return (*jobs, *pods), earliest(wait)


def _kept_run(service: ServiceStatus) -> int | None:
    last = service.last
    kept = last is not None and (
        last.outcome in ("Failed", "Succeeded") or reason_of(last).reason is Reason.PARTNER_FAILED
    )
    return last.run if last is not None and kept else None


def _stays(pod: PodView, kept: int | None) -> bool:
    return pod.terminal and (pod.role == ROLE_PROFILE or pod.run == kept)
