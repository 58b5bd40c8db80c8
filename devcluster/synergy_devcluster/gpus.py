"""The health of the real node's fake GPUs, changed on command."""

from synergy_devcluster.cluster import Cluster
from synergy_devcluster.control_plane import REAL_NODE
from synergy_devcluster.errors import BadInputError
from synergy_devcluster.gpu_plugin.devices import gpu_uuids, read_unhealthy, write_unhealthy
from synergy_devcluster.node import NodePaths


def listed(cluster: Cluster) -> dict[str, bool]:
    """Return each GPU's UUID and whether it is healthy, in the order of their index."""
    unhealthy = read_unhealthy(NodePaths(cluster.paths).gpu_health)
    return {uuid: uuid not in unhealthy for uuid in gpu_uuids(REAL_NODE, cluster.options.gpus)}


def set_health(cluster: Cluster, uuid: str, *, healthy: bool) -> None:
    """Make a GPU healthy or unhealthy; the node's allocatable follows within about 2 s.

    Raises:
        BadInputError: the node has no such GPU.
    """
    health = listed(cluster)
    if uuid not in health:
        raise BadInputError(f"no GPU {uuid!r} on the real node: use one of {', '.join(health) or 'none'}")
    health[uuid] = healthy
    write_unhealthy(NodePaths(cluster.paths).gpu_health, [name for name, good in health.items() if not good])
