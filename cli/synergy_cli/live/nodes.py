"""The resources of nodes, from the Node and GPUPool objects."""

from collections.abc import Sequence

from synergy_api.cluster.pool import read_pools
from synergy_api.cluster.pools import NodeCapacity, node_capacities
from synergy_cli.live.access import Object

_OWN_TAINTS = "node.kubernetes.io/"


def gpu_nodes(nodes: Sequence[Object], pools: Sequence[Object]) -> list[NodeCapacity]:
    """GPU nodes with their resources. Tainted nodes are included, because jobs may tolerate the taint."""
    chosen = {taint["key"] for node in nodes for taint in node["spec"].get("taints") or []}
    tolerations = [{"key": key, "operator": "Exists"} for key in chosen if not key.startswith(_OWN_TAINTS)]
    return node_capacities(nodes, read_pools(pools)[0], tolerations)
