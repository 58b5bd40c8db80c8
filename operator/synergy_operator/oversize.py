"""A TrainingJob that has been filled up until its status finds no room: nothing can be recorded of it any more.

Its owner can do that at any time, with labels, annotations or a longer template. Without its status it could neither be
told to leave nor release its GPUs, so its pods are deleted: that needs no status.
"""

from synergy_api.reasons import Reason, say
from synergy_operator.actions import Action, Actions, DeleteJob, DeletePod, PostEvent
from synergy_operator.observed import Observed
from synergy_operator.views import MOST_OBJECT_BYTES


def holds_room(observed: Observed) -> bool:
    """Whether the job has pods or Jobs that are to be deleted."""
    return bool(_held(observed))


def give_back(observed: Observed) -> Actions:
    """Delete what holds room, and tell why. Nothing is written of the job until it is smaller."""
    held = _held(observed)
    if not held:
        return Actions()
    told = say(Reason.OBJECT_TOO_LARGE, limit=MOST_OBJECT_BYTES)
    return Actions((*held, PostEvent("Warning", told.reason, told.message)))


def _held(observed: Observed) -> list[Action]:
    held: list[Action] = [DeleteJob(job.name, job.uid) for job in observed.batch_jobs if not job.deleting]
    held += [DeletePod(p.name, p.uid) for p in observed.pods if not p.terminal and p.deleting_until is None]
    return held
