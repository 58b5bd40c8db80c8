"""What the run protocol requires by itself: ended runs are released, and runs that must not start are revoked."""

import math
from collections.abc import Mapping

from synergy_api.leaving import leave_seconds
from synergy_api.reasons import Reason, say
from synergy_api.timestamps import parse_time
from synergy_extender.cluster.jobs.unstarted import NOT_STARTED_SECONDS, OVERLOOKED_SECONDS, waits_for_room
from synergy_extender.cluster.revocation import PODS_NOT_STARTED, Revocation
from synergy_extender.cluster.run_state import open_run
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import Key, PodView
from synergy_extender.colocation.partners import Coming
from synergy_extender.decisions import allocations as places
from synergy_extender.decisions.changes import ChangeKind, Draft
from synergy_extender.decisions.shared_admission import ByOrder
from synergy_extender.rounds import Moment
from synergy_extender.tenants.room import TenantRoom

NOT_ADMITTED_SECONDS = 120.0
"""A granted run gives its place back when its room has not come free this long after it was granted, or after the pods
there that were deleted had to be gone by the end of their grace periods. While the operator still has to end runs
there, and others get the room that they wait for, it waits for 15 minutes at most."""


def give_back(draft: Draft, moment: Moment, waits_since: float, order: ByOrder) -> None:
    """A granted run gives its place back if its room could have been free since then, and was not given to it now.
    Where jobs start one after the other, it waits for its turn: those before it give their places back in time."""
    allocation = draft.granted
    if allocation is None or order.another_starts(allocation):
        return
    if moment.now - waits_since > NOT_ADMITTED_SECONDS:
        draft.put(ChangeKind.LEAVE, places.revoke(allocation, moment.now, Revocation.ROOM_NOT_FREED))


def still_waits_for_room(draft: Draft) -> bool:
    """Whether the run was granted its place before this decision, and is not admitted by it either."""
    before, now = draft.job.status.allocation, draft.granted
    return (
        waits_for_room(draft.job)
        and before is not None
        and now is not None
        and before.run == now.run
        and not now.admitted
    )


def waits_since(
    draft: Draft,
    moment: Moment,
    granted_since: Mapping[Key, float],
    state: ClusterState,
    most_checkpoint_s: float,
    *,
    tenants: TenantRoom,
    freed_at: float = -math.inf,
) -> float:
    """Since when the room of a granted run could have been free, on its nodes and within its tenants' caps: it counts
    no long grace period and no slow checkpoint. A job waits no longer for a grace period than for a checkpoint. While
    the operator has not come to pods there, it counts from the last moment in which any job got its room, `freed_at`:
    when thousands of runs end at once, each newcomer would give its place back, for the operator to do even more."""
    since = granted_since.get(draft.job.key, moment.now)
    granted = draft.granted
    nodes = draft.allocation.workers if draft.allocation is not None else []
    there = [pod for share in nodes for pod in state.pods.on_node(share.node)]
    there += tenants.leaving(draft.job, granted) if granted is not None and not granted.admitted else []
    soon = moment.now + most_checkpoint_s  # the owner of a pod may choose a grace period of years
    going = [pod.leaves_by for pod in there if pod.leaves_by is not None and pod.leaves_by <= soon]
    told = [by for pod in there if (by := _told_to_leave_by(pod, state, most_checkpoint_s)) is not None]
    since = max([since, *going, *told])
    if moment.now - since <= OVERLOOKED_SECONDS and any(_is_to_be_ended(pod, state) for pod in there):
        return max(since, freed_at)
    return since


def _is_to_be_ended(pod: PodView, state: ClusterState) -> bool:
    """Whether the pod's run has ended or is revoked, and the operator has not deleted the pod yet."""
    if pod.member is None or pod.leaves_by is not None:
        return False
    job = state.jobs.get(pod.member.job)
    allocation = open_run(job) if job is not None else None
    return allocation is None or allocation.run != pod.member.run or allocation.state == "Revoked"


def _told_to_leave_by(pod: PodView, state: ClusterState, most_checkpoint_s: float) -> float | None:
    """When the operator ends the pod of a revoked run at the latest (Unix time); None for all other pods."""
    job = state.jobs.get(pod.member.job) if pod.member is not None else None
    allocation = open_run(job) if job is not None else None
    if job is None or allocation is None or allocation.state != "Revoked" or allocation.lease_until is None:
        return None
    return parse_time(allocation.lease_until) + leave_seconds(job.spec, job.status, most_checkpoint_s)


def settle(draft: Draft, moment: Moment, usable: set[str], order: ByOrder, *, for_pods_s: float) -> None:
    """Changes that follow from the run protocol alone: ended runs are released, and runs that must not start.
    `for_pods_s` is for how many seconds an admitted run has waited for its first bound pod."""
    allocation, job = draft.allocation, draft.job
    if allocation is None:
        return
    if open_run(job) is None:
        if allocation.state != "Released":
            draft.put(ChangeKind.LEAVE, places.release(allocation))
        return
    if allocation.state != "Granted":
        return
    reason = ""
    if job.deleting:  # as long as a finalizer of anybody's keeps it
        reason = Revocation.DELETED
    elif job.spec.suspend:
        reason = Revocation.SUSPENDED
    elif not allocation.admitted and not usable.issuperset(places.nodes_of(allocation.workers)):
        reason = Revocation.NODE_UNUSABLE
    elif not allocation.admitted and order.partners(job.key, allocation) is Coming.NEVER:
        reason = Revocation.PARTNERS_GONE
    elif allocation.admitted and for_pods_s > NOT_STARTED_SECONDS:
        waited_s = OVERLOOKED_SECONDS if for_pods_s > OVERLOOKED_SECONDS else NOT_STARTED_SECONDS
        finding = say(Reason.PODS_NOT_STARTED, run=allocation.run, seconds=round(waited_s))
        reason = f"{PODS_NOT_STARTED}{finding.message}"
    if reason:
        draft.put(ChangeKind.LEAVE, places.revoke(allocation, moment.now, reason))
