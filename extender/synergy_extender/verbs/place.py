"""Where the plan wants a pod, or why it may not be placed. One rule for filter, prioritize and bind."""

from dataclasses import dataclass
from enum import StrEnum

from synergy_api.names import ROLE_PROFILE, ROLE_WORKER, SCHEDULER_NAME, worker_pod_name
from synergy_extender.cluster.views import JobView, RunMember


class Refused(StrEnum):
    """Why a pod may not be placed. The texts are stable: the kube-scheduler groups equal ones."""

    NOT_OURS = (
        f"this pod is no worker of a TrainingJob, and the scheduler {SCHEDULER_NAME} places only those: "
        "set spec.schedulerName to default-scheduler, or submit a TrainingJob"
    )
    NO_JOB = "its TrainingJob does not exist"
    OTHER_JOB = "its TrainingJob was deleted, and another has its name"
    NO_PLACE = "its TrainingJob has no place in the plan"
    OLD_RUN = "its run is over and it will be removed"
    FUTURE_RUN = "the plan does not know its run yet"
    LEAVING = "its run is revoked"
    NOT_ADMITTED = "its place is not free yet"
    WRONG_ROLE = "the plan gave its run a place for another purpose"
    NO_NODE = "the plan of its run does not name the node it was made for"


_MAY_BE_BEHIND = frozenset(
    {Refused.NO_JOB, Refused.OTHER_JOB, Refused.NO_PLACE, Refused.FUTURE_RUN, Refused.NOT_ADMITTED}
)
"""What a watch that is a moment behind would also say."""
_TRANSIENT = frozenset({Refused.FUTURE_RUN, Refused.NOT_ADMITTED})

OTHER_NODE = "planned elsewhere"
"""For each node but one, in every answer: kept short."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A pod that may not be placed."""

    why: Refused

    @property
    def may_be_behind(self) -> bool:
        """Whether a fresh look at the job may say otherwise."""
        return self.why in _MAY_BE_BEHIND

    @property
    def transient(self) -> bool:
        """Whether trying again soon may succeed. Such a refusal is answered as an error: the kube-scheduler retries a
        pod after an error within seconds, but leaves one that only an extender rejected for minutes."""
        return self.why in _TRANSIENT


def place_of(name: str, member: RunMember | None, planned_node: str, job: JobView | None) -> str | Refusal:
    """The node that the plan gave the pod `name`, or the refusal.

    Only the current run of a granted and admitted allocation is placed, and only where its allocation says.
    """
    if member is None or not (_has_its_name(name, member) or (job is not None and job.spec.managed is not None)):
        return Refusal(Refused.NOT_OURS)
    if job is None:
        return Refusal(Refused.NO_JOB)
    if not member.is_of(job):
        return Refusal(Refused.OTHER_JOB)
    why = _objection(member, planned_node, job)
    return planned_node if why is None else Refusal(why)


def _has_its_name(name: str, member: RunMember) -> bool:
    """Whether the operator made the pod. Those of a managed object have names of its controller."""
    return member.role != ROLE_WORKER or name == worker_pod_name(member.job.name, member.run, member.rank)


def _objection(member: RunMember, planned_node: str, job: JobView) -> Refused | None:
    allocation = job.status.allocation
    if allocation is None:
        return Refused.NO_PLACE
    objections = (
        (member.run < allocation.run or allocation.state == "Released", Refused.OLD_RUN),
        (member.run > allocation.run, Refused.FUTURE_RUN),
        (allocation.state != "Granted" or job.deleting, Refused.LEAVING),
        ((member.role == ROLE_PROFILE) != (allocation.purpose == "Profile"), Refused.WRONG_ROLE),
        (not allocation.admitted, Refused.NOT_ADMITTED),
        (planned_node not in {share.node for share in allocation.workers}, Refused.NO_NODE),
    )
    return next((why for holds, why in objections if holds), None)
