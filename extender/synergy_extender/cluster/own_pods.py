"""The pods of a run that the operator made for it, as far as labels, names and nodes show.

Anyone with the right to create pods in the namespace can write the labels of a run. Plans cannot allocate what such a
pod holds."""

from synergy_api.names import ROLE_PROFILE, ROLE_WORKER, worker_pod_name
from synergy_api.parts.allocation import Allocation
from synergy_extender.cluster.pod_index import PodIndex
from synergy_extender.cluster.views import Key, PodView


def own_pods(job: Key, allocation: Allocation, pods: PodIndex) -> list[PodView]:
    """The pods of the allocation's run that have not ended and are where it says."""
    nodes = {share.node for share in allocation.workers}
    most = sum(share.gpus for share in allocation.workers)
    found = (pod for pod in pods.of_run(job, allocation.run) if (pod.node or pod.planned_node) in nodes)
    if allocation.purpose == "Profile":
        return [pod for pod in found if pod.member is not None and pod.member.role == ROLE_PROFILE]
    return [pod for pod in found if _is_worker(pod, job, most)]


def _is_worker(pod: PodView, job: Key, most: int) -> bool:
    """A worker has a GPU at least: the run has no more ranks than GPUs."""
    member = pod.member
    return (
        member is not None
        and member.role == ROLE_WORKER
        and member.rank < most
        and pod.name == worker_pod_name(job.name, member.run, member.rank)
    )
