"""A TrainingJob that has been filled up until its status finds no room: nothing can be recorded of it any more.

Its owner can do that at any time, with labels, annotations or a longer template. Without its status it could neither be
told to leave nor release its GPUs, so its pods are deleted: that needs no status.
"""

from synergy_api.reasons import Reason, say
from synergy_operator.actions import Action, Actions, DeleteJob, DeletePod, PostEvent
from synergy_operator.views.job import MOST_OBJECT_BYTES
from synergy_operator.views.observed import Observed


def release(observed: Observed) -> Actions:
    """Delete what holds room, and tell why. Nothing is written of the job until it is smaller."""
    pods = [pod for pod in observed.pods if not pod.terminal and pod.deleting_until is None]
    jobs = [job for job in observed.batch_jobs if not job.deleting]
    if not pods and not jobs:
        return Actions()
    finding = say(Reason.OBJECT_TOO_LARGE, limit=MOST_OBJECT_BYTES)
    todo: list[Action] = [DeleteJob(job.name, job.uid) for job in jobs]
    todo += [DeletePod(pod.name, pod.uid) for pod in pods]
    return Actions((*todo, PostEvent("Warning", finding.reason, finding.message)))
