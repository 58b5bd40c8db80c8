"""The resources of nodes, from the Node and GPUPool objects."""

import time
from collections.abc import Sequence

from pydantic import ValidationError

from synergy_api.cluster.nodes import tolerations_of_all
from synergy_api.cluster.pool import read_pools
from synergy_api.cluster.pools import NodeCapacity, node_capacities
from synergy_api.resources.scheduling_policy import DEFAULT_POLICY_NAME, SchedulingPolicySpec
from synergy_cli.live.access import Cluster, Object
from synergy_cli.live.output import note
from synergy_kube.resources import GPU_POOLS, NODES, SCHEDULING_POLICIES
from synergy_view.seen import SeenJob
from synergy_view.top import FailingNodeRow, failing_node_rows


def gpu_nodes(nodes: Sequence[Object], pools: Sequence[Object]) -> list[NodeCapacity]:
    """GPU nodes with their resources. Tainted nodes are included, because jobs may tolerate the taint."""
    return node_capacities(nodes, read_pools(pools)[0], tolerations_of_all(nodes))


async def failing_rows(cluster: Cluster, jobs: Sequence[SeenJob]) -> list[FailingNodeRow] | None:
    """The nodes that keep failing these jobs; None if the user may not list nodes."""
    nodes, pools = await cluster.items(NODES), await cluster.items(GPU_POOLS)
    if nodes is None:
        return None
    options = (await _policy(cluster)).failing_nodes
    return failing_node_rows(jobs, nodes, gpu_nodes(nodes, pools or ()), options, time.time())


async def _policy(cluster: Cluster) -> SchedulingPolicySpec:
    """The written one; the defaults where there is none, or none that this version can read."""
    policies = await cluster.items(SCHEDULING_POLICIES) or []
    written = next((one for one in policies if one["metadata"]["name"] == DEFAULT_POLICY_NAME), None)
    try:
        return SchedulingPolicySpec.model_validate((written or {}).get("spec") or {})
    except ValidationError:
        note("the SchedulingPolicy cannot be read: the command goes by its defaults")
        return SchedulingPolicySpec()
