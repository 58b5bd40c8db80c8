"""TrainingJobs so large that their status no longer fits: the operator cannot record anything about them.

A job's owner can cause this at any time, with labels, annotations or a longer template. Without a status the run could
not be revoked or closed. The operator therefore deletes its pods, which needs no status.
"""

from synergy_api.reasons import Reason, say
from synergy_operator.actions import Action, Actions, DeleteJob, PostEvent
from synergy_operator.run.take_down import pod_deletions
from synergy_operator.views.job import MOST_OBJECT_BYTES
from synergy_operator.views.observed import Observed


def holds_resources(observed: Observed, now: float) -> bool:
    """Whether the job has pods or Jobs that `release` would delete."""
    return bool(_deletions(observed, now))


def release(observed: Observed, now: float) -> Actions:
    """Delete everything that holds resources, and post an event. The status is not written until the job is smaller."""
    deletions = _deletions(observed, now)
    if not deletions:
        return Actions()
    finding = say(Reason.OBJECT_TOO_LARGE, limit=MOST_OBJECT_BYTES)
    return Actions((*deletions, PostEvent("Warning", finding.reason, finding.message)))


def _deletions(observed: Observed, now: float) -> list[Action]:
    pods, _ = pod_deletions((pod for pod in observed.pods if not pod.terminal), observed, now)
    jobs = [job for job in observed.batch_jobs if not job.deleting]
    return [*(DeleteJob(job.name, job.uid) for job in jobs), *pods]
