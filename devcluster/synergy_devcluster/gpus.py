"""The health of the real nodes' fake GPUs, changed on command."""

from dataclasses import dataclass

from synergy_devcluster.cluster import Cluster
from synergy_devcluster.errors import BadInputError
from synergy_devcluster.gpu_plugin.devices import gpu_uuids, read_unhealthy, write_unhealthy
from synergy_devcluster.real_nodes import RealNode


@dataclass(frozen=True)
class Gpu:
    """One fake GPU of a real node."""

    uuid: str
    node: str
    healthy: bool


def listed(cluster: Cluster) -> list[Gpu]:
    """Return the GPUs of every real node, in the order of their index."""
    return [gpu for node in cluster.real_nodes() for gpu in _of(node, cluster.options.gpus)]


def set_health(cluster: Cluster, uuid: str, *, healthy: bool) -> None:
    """Make a GPU healthy or unhealthy; the node's allocatable follows within about 2 s.

    Raises:
        BadInputError: no real node has such a GPU.
    """
    for node in cluster.real_nodes():
        gpus = _of(node, cluster.options.gpus)
        if uuid in {gpu.uuid for gpu in gpus}:
            unhealthy = {gpu.uuid for gpu in gpus if not gpu.healthy} - {uuid}
            write_unhealthy(node.gpu_health, unhealthy if healthy else unhealthy | {uuid})
            return
    known = ", ".join(gpu.uuid for gpu in listed(cluster)) or "none, there is no GPU"
    raise BadInputError(f"no GPU {uuid!r} on a real node: use one of {known}")


def _of(node: RealNode, count: int) -> list[Gpu]:
    unhealthy = read_unhealthy(node.gpu_health)
    return [Gpu(uuid, node.name, uuid not in unhealthy) for uuid in gpu_uuids(node.name, count)]
