"""The pods of a run that the operator made for it, as far as labels, names and nodes show.

Anyone with the right to create pods in the namespace can write the labels of a run. Plans cannot allocate what such a
pod holds."""

from synergy_api.names import ROLE_PROFILE, ROLE_WORKER, worker_pod_name
from synergy_api.parts.allocation import Allocation
from synergy_extender.cluster.pod_index import PodIndex
from synergy_extender.cluster.views import JobView, PodView


def own_pods(job: JobView, allocation: Allocation, pods: PodIndex) -> list[PodView]:
    """The pods of the allocation's run that have not ended and are where it says. Pods of a managed object have names
    of its controller; of those, one for each rank counts."""
    nodes = {share.node for share in allocation.workers}
    most = sum(share.gpus for share in allocation.workers)
    found = (pod for pod in pods.of_run(job.key, allocation.run) if (pod.node or pod.planned_node) in nodes)
    if allocation.purpose == "Profile":
        return [pod for pod in found if pod.member is not None and pod.member.role == ROLE_PROFILE]
    workers = [(rank, pod) for pod in found if (rank := _rank(pod, most)) is not None]
    if job.spec.managed is not None:
        return list(dict(workers).values())
    return [pod for rank, pod in workers if pod.name == worker_pod_name(job.key.name, allocation.run, rank)]


def _rank(pod: PodView, most: int) -> int | None:
    """The rank of a worker. It has a GPU at least: the run has no more ranks than GPUs."""
    member = pod.member
    return member.rank if member is not None and member.role == ROLE_WORKER and member.rank < most else None
