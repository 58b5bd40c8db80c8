"""When a worker that nobody can see has surely stopped writing checkpoints (docs/decisions/0027-fencing.md).

A pod on a node that does not report may train on. Its run is fenced once the node is dead for certain, or once the
library's own fence has passed since the pod was told to go: from then on the extender tells the run to leave.
"""

from collections.abc import Iterable
from typing import Final

from synergy_api.reasons import Finding, Reason, say
from synergy_api.timestamps import format_time
from synergy_operator.pods.gang import GangWorker
from synergy_operator.views.cluster import ClusterView
from synergy_operator.views.pod import PodView

MARGIN_SECONDS: Final = 120.0
"""Beyond the library's fence: an extender that has just lost the API server lets workers go on for a minute at most,
and a checkpoint may be on its way to the disk."""


def fenced_at(pod: PodView, cluster: ClusterView, fence_seconds: float) -> float | None:
    """When (Unix seconds) a worker pod that was told to go is fenced; None where it is already, since its node is dead
    or still reports the pod's end itself."""
    if pod.deleting_until is None or not pod.node or not cluster.lost(pod.node) or cluster.dead(pod.node):
        return None
    return pod.deleting_until + fence_seconds + MARGIN_SECONDS


def waiting_for(pods: Iterable[PodView], cluster: ClusterView, fence_seconds: float, now: float) -> Finding | None:
    """What the job is told while the run's end waits for a fence; None where it does not."""
    waits = [(at, pod) for pod in pods if (at := fenced_at(pod, cluster, fence_seconds)) is not None and at > now]
    if not waits:
        return None
    until, pod = max(waits, key=lambda wait: (wait[0], wait[1].name))
    return say(Reason.NODE_NOT_FENCED, run=pod.run, rank=pod.rank, node=pod.node, until=format_time(until))


def unseen_until(
    gang: Iterable[GangWorker], known: Iterable[PodView], cluster: ClusterView, fence_seconds: float, now: float
) -> float | None:
    """Until when the next run must not start because a pod of this one has vanished from a node that does not report,
    as after a forced deletion by somebody else; None where every worker's end is known or fenced.

    `known` are the pods that are there or were seen to go.
    """
    seen = {pod.rank: pod for pod in known}
    for member in gang:
        node, pod = member.place.node, seen.get(member.rank)
        if not cluster.lost(node) or cluster.dead(node):
            continue
        if pod is not None and (pod.terminal or pod.main.finished_at is not None or not pod.node):
            continue
        at = None if pod is None else fenced_at(pod, cluster, fence_seconds)
        if at is None or at > now:
            return now + fence_seconds + MARGIN_SECONDS
    return None
