"""A node whose GPUs are shared by MPS, for tests of the extender."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from support.extender.cluster import cluster, node_object
from synergy_api.cluster.pool import Pool
from synergy_api.cluster.pools import node_capacities
from synergy_api.resources.gpu_pool import GPUPoolSpec
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, PodView


def shared_node(name: str = "n1", *, gpus: int = 4, replicas: int = 2, renamed: bool = False) -> dict[str, Any]:
    """A node with GPUs shared by MPS."""
    made = node_object(name)
    resource = "nvidia.com/gpu.shared" if renamed else "nvidia.com/gpu"
    del made["status"]["allocatable"]["nvidia.com/gpu"]
    made["status"]["allocatable"][resource] = str(gpus * replicas)
    made["metadata"]["labels"] |= {
        "nvidia.com/gpu.count": str(gpus),
        "nvidia.com/gpu.memory": "16384",
        "nvidia.com/gpu.replicas": str(replicas),
        "nvidia.com/gpu.sharing-strategy": "mps",
    }
    return made


def shared_cluster(
    jobs: Iterable[JobView] = (), pods: Iterable[PodView] = (), *, preference: str = "Packed", **node: Any
) -> ClusterState:
    """One node of shared GPUs, in a pool that says what the plugin prefers."""
    nodes = [shared_node(**node)]
    sharing = {"mode": "MPS", "replicas": node.get("replicas", 2), "preference": preference}
    spec = {"gpuType": "V100", "nodeSelector": {"nvidia.com/gpu.sharing-strategy": "mps"}, "sharing": sharing}
    return replace(
        cluster(nodes, jobs, pods), capacities=node_capacities(nodes, [Pool("p", GPUPoolSpec.model_validate(spec))])
    )
