"""What a node lacks for NVIDIA's device plugin to share its GPUs by MPS. Pure.

The labels are those of the device plugin and of GPU feature discovery.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from synergy_api.cluster.nodes import Object, labels_of
from synergy_api.cluster.pool import DiscoveryLabels, Pool
from synergy_api.cluster.pools import LABEL_PRODUCT
from synergy_api.names import GPU_RESOURCES, RESOURCE_GPU

LABEL_CONFIG: Final = "nvidia.com/device-plugin.config"
"""The configuration of the device plugin that the node takes."""
LABEL_CAPABLE: Final = "nvidia.com/mps.capable"
"""The plugin's MPS daemon runs on nodes where it is true."""
_MIG_RESOURCE: Final = "nvidia.com/mig-"
_MIG_PRODUCT: Final = "-MIG-"


def mps_problems(nodes: Iterable[Object], pools: Iterable[Pool]) -> dict[str, tuple[str, str]]:
    """By node, what its pool's `sharing.mode: MPS` lacks there, and what to do. The first problem of each node."""
    shared = [pool for pool in pools if pool.spec.sharing.mode == "MPS"]
    found: dict[str, tuple[str, str]] = {}
    for node in nodes:
        labels = labels_of(node)
        pool = next((one for one in shared if one.selects(labels)), None)
        problem = _problem(node, labels, pool.spec.sharing.replicas) if pool is not None else None
        if problem is not None:
            found[str(node["metadata"]["name"])] = problem
    return found


def _problem(node: Object, labels: Mapping[str, str], replicas: int) -> tuple[str, str] | None:
    told = DiscoveryLabels(labels, RESOURCE_GPU)
    strategy = told.get("sharing-strategy")
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    if _MIG_PRODUCT in labels.get(LABEL_PRODUCT, "") or any(name.startswith(_MIG_RESOURCE) for name in allocatable):
        return "has MIG devices, which MPS does not share", "disable MIG there, or take the node out of the GPUPool"
    if LABEL_CONFIG not in labels and strategy != "mps":
        return (
            f"has no label {LABEL_CONFIG}",
            "label it with a configuration that has sharing.mps (devicePlugin.configs of the chart)",
        )
    if strategy != "mps":
        named = labels[LABEL_CONFIG]
        return (
            f"takes the configuration {named}, and is labelled {told.key('sharing-strategy')}={strategy or 'none'}",
            f"give {named} sharing.mps with replicas above 1; see the logs of device plugin and GPU feature discovery",
        )
    if labels.get(LABEL_CAPABLE) != "true":
        return (
            f"is labelled {LABEL_CAPABLE}={labels.get(LABEL_CAPABLE, 'nothing')}, without which no MPS daemon runs",
            "have GPU feature discovery take the same configuration as the device plugin, and look at its log",
        )
    devices = sum(_count(str(allocatable.get(name, "0"))) for name in GPU_RESOURCES)
    clients, built_in = told.number("replicas") or replicas, told.number("count")
    if built_in and devices < built_in * clients:
        return (
            f"offers {devices} of {built_in * clients} shared devices",
            "look at the logs of the MPS daemon and the device plugin: the plugin waits for the daemon",
        )
    return None


def _count(text: str) -> int:
    return int(text) if text.isdecimal() else 0
