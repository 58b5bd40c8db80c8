"""When a worker that cannot be observed has certainly stopped writing checkpoints (docs/decisions/0027-fencing.md).

A pod on a node that does not report may continue to train. Its run is fenced in one of two cases:

- The node is certainly dead.
- The library's own fence has passed since the pod's deletion. The extender revokes the run from the deletion on.
"""

from collections.abc import Iterable
from typing import Final

from synergy_api.reasons import Finding, Reason, say
from synergy_api.timestamps import format_time
from synergy_operator.pods.gang import GangWorker
from synergy_operator.views.cluster import ClusterView
from synergy_operator.views.pod import PodView

MARGIN_SECONDS: Final = 120.0
"""Time in addition to the library's fence.

An extender that has just lost the API server lets workers continue for a minute at most. A checkpoint may also be on
its way to the disk.
"""


def fenced_at(pod: PodView, cluster: ClusterView, fence_seconds: float) -> float | None:
    """When a deleted worker pod is fenced, in Unix seconds.

    None if no fence is needed: the pod is not deleted, its node is dead, or its node still reports the pod's end.
    """
    if pod.deleting_until is None or not pod.node or not cluster.lost(pod.node) or cluster.dead(pod.node):
        return None
    return pod.deleting_until + fence_seconds + MARGIN_SECONDS


def waiting_for(pods: Iterable[PodView], cluster: ClusterView, fence_seconds: float, now: float) -> Finding | None:
    """The finding to show while the run's end waits for a fence; None if it does not wait."""
    waits = [(at, pod) for pod in pods if (at := fenced_at(pod, cluster, fence_seconds)) is not None and at > now]
    if not waits:
        return None
    until, pod = max(waits, key=lambda wait: (wait[0], wait[1].name))
    return say(Reason.NODE_NOT_FENCED, run=pod.run, rank=pod.rank, node=pod.node, until=format_time(until))


def unseen_until(
    gang: Iterable[GangWorker], known: Iterable[PodView], cluster: ClusterView, fence_seconds: float, now: float
) -> float | None:
    """The earliest start of the next run (Unix seconds) if a worker of this one may still train unseen; None otherwise.

    That is the case for a pod that vanished from a node that does not report, for example by a forced deletion. `known`
    are the pods that exist or were seen to end.
    """
    seen = {pod.rank: pod for pod in known}
    for worker in gang:
        node, pod = worker.share.node, seen.get(worker.rank)
        if not cluster.lost(node) or cluster.dead(node):
            continue
        if pod is not None and (pod.terminal or pod.main.finished_at is not None or not pod.node):
            continue
        at = None if pod is None else fenced_at(pod, cluster, fence_seconds)
        if at is None or at > now:
            return now + fence_seconds + MARGIN_SECONDS
    return None
