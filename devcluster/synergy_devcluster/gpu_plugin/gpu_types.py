"""The GPU types a fake GPU can claim to be, and the node labels that NVIDIA's GPU feature discovery would set."""

import re
from dataclasses import dataclass

from synergy_devcluster.errors import BadInputError


@dataclass(frozen=True)
class GpuType:
    """A GPU model: its short name, the product label's value, and its memory in MiB."""

    name: str
    product: str
    memory_mib: int


_KNOWN = {
    gpu.name: gpu
    for gpu in (
        GpuType("A100", "NVIDIA-A100-SXM4-40GB", 40960),
        GpuType("H100", "NVIDIA-H100-80GB-HBM3", 81559),
        GpuType("K80", "Tesla-K80", 11441),
        GpuType("P100", "Tesla-P100-PCIE-16GB", 16280),
        GpuType("T4", "Tesla-T4", 15360),
        GpuType("V100", "Tesla-V100-SXM2-16GB", 16384),
    )
}
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def gpu_type(name: str) -> GpuType:
    """Return a known type by its short name; any other name that fits a label is a product of 16 GiB.

    Raises:
        BadInputError: the name cannot be a label's value.
    """
    if name in _KNOWN:
        return _KNOWN[name]
    if not _LABEL_VALUE.fullmatch(name):
        raise BadInputError(
            f"GPU type {name!r}: use {', '.join(sorted(_KNOWN))} or a product name of letters, digits, ._-"
        )
    return GpuType(name, name, 16384)


def node_labels(gpu: GpuType, count: int, replicas: int = 1, *, renamed: bool = False) -> dict[str, str]:
    """Return the labels GPU feature discovery sets on a node with ``count`` GPUs (none without GPUs).

    More than one replica means shared by MPS; the product says so too unless the resource was renamed.
    """
    if count == 0:
        return {}
    shared = replicas > 1
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": gpu.product + ("-SHARED" if shared and not renamed else ""),
        "nvidia.com/gpu.count": str(count),
        "nvidia.com/gpu.memory": str(gpu.memory_mib),
        "nvidia.com/gpu.replicas": str(replicas),
        "nvidia.com/gpu.sharing-strategy": "mps" if shared else "none",
        # "true" only on nodes that share their GPUs by MPS
        "nvidia.com/mps.capable": "true" if shared else "false",
    }
