"""Exact partners on nodes of several shared GPUs, by the order in which their pods come.

The kubelet, not the plan, picks the GPU. A plugin that packs prefers the fullest GPU that has a free device, so a pod
gets the planned partner's GPU where that is the only one half full, and an empty one where none is. Hence: one pod at
a time, the next only when the kubelet has taken the last one in; and at most one half-full GPU on a node.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from synergy_api.cluster.pools import NodeCapacity
from synergy_api.parts.allocation import Allocation
from synergy_extender.cluster.run_state import open_run
from synergy_extender.cluster.views import JobView, Key, PodView

Group = frozenset[str]
"""The jobs that the plan gives one GPU."""


def key_of(name: str) -> Key:
    """The key of a job by its name in a status, NAMESPACE/NAME."""
    namespace, _, own = name.partition("/")
    return Key(namespace, own)


def group_of(job: Key, allocation: Allocation) -> Group:
    """The job and its planned partners."""
    partners = allocation.shared_gpu.asked if allocation.shared_gpu is not None else []
    return frozenset({str(job), *partners})


@dataclass(frozen=True)
class Occupancy:
    """Who holds devices of a node: planned groups with their number, and what keeps further jobs away.

    `unseen` are pods that the kubelet has not taken in yet; `unplanned` hold part of a GPU outside the plan: other
    people's, and ours that leave.
    """

    groups: Mapping[Group, int]
    unseen: tuple[str, ...]
    unplanned: tuple[str, ...]

    def half_full(self, replicas: int) -> list[Group]:
        """Groups that lack a job: each has a GPU with a free device."""
        return [group for group, devices in self.groups.items() if devices % replicas]


def occupancy(pods: Iterable[PodView], jobs: Mapping[Key, JobView], replicas: int) -> Occupancy:
    """What the pods of a node, bound or on their way to it, hold of its GPUs."""
    groups: dict[Group, int] = {}
    unseen, unplanned = [], []
    for pod in pods:
        if not pod.requests.gpus:
            continue
        if not pod.started:
            unseen.append(f"{pod.namespace}/{pod.name}")
        group = _group(pod, jobs)
        if group is not None:
            groups[group] = groups.get(group, 0) + pod.requests.gpus
        elif pod.requests.gpus % replicas:
            unplanned.append(f"{pod.namespace}/{pod.name}")
    return Occupancy(groups, tuple(sorted(unseen)), tuple(sorted(unplanned)))


def _group(pod: PodView, jobs: Mapping[Key, JobView]) -> Group | None:
    """None for pods that no plan counts on."""
    job = jobs.get(pod.member.job) if pod.member is not None else None
    allocation = open_run(job) if job is not None else None
    if job is None or allocation is None or pod.member is None or pod.leaves_by is not None or job.deleting:
        return None
    if allocation.run != pod.member.run or allocation.state != "Granted":
        return None
    return group_of(job.key, allocation)


def in_the_way(group: Group, node: NodeCapacity, there: Occupancy) -> str | None:
    """Why a pod of `group` that came to the node now might get another GPU than planned; None where it will not."""
    if there.unseen:
        return f"on node {node.name} pod {there.unseen[0]} has not been given its GPU yet; partners come one by one"
    if there.unplanned:
        return (
            f"on node {node.name} pod {there.unplanned[0]} holds part of a GPU outside the plan: this one would join it"
        )
    others = [other for other in there.half_full(node.replicas) if other != group]
    if others:
        names = " and ".join(sorted(others[0]))
        return f"on node {node.name} the GPU of {names} is half full: this pod would join it, against the plan"
    return None
