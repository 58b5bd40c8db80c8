"""How a node offers its GPUs: the one place that knows names of GPU resources. Pure.

Everything else counts what a node's `resource` names. It is either an extended resource of a device plugin, such as
`nvidia.com/gpu`, or a device class of DRA in the words of ResourceQuotas.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from synergy_api.names import GPU_RESOURCES, RESOURCE_GPU, RESOURCE_SHARED_GPU
from synergy_api.quantity import whole_count

_OF_NVIDIA_MIG: Final = "nvidia.com/mig-"
_OF_A_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
_NOT_EXTENDED: Final = ("requests.", "limits.")


def class_resource(device_class: str) -> str:
    """What a node's GPUs of a device class are called."""
    return f"{device_class}{_OF_A_CLASS}"


def device_class(resource: str) -> str | None:
    """The device class that the name stands for; None for resources of device plugins."""
    return resource.removesuffix(_OF_A_CLASS) if resource.endswith(_OF_A_CLASS) else None


def is_extended(resource: str) -> bool:
    """Whether a resource is one of a device plugin: it has a domain, and the domain is not Kubernetes' own."""
    domain, slash, _ = resource.partition("/")
    foreign = not domain.endswith(("kubernetes.io", "k8s.io")) and not domain.startswith(_NOT_EXTENDED)
    return bool(slash) and foreign


def is_mig(resource: str) -> bool:
    """Whether the resource is a MIG profile, as NVIDIA's device plugin offers them with its strategy `mixed`."""
    return resource.startswith(_OF_NVIDIA_MIG)


def is_gpu(resource: str) -> bool:
    """Whether the name alone tells that a resource is a GPU's: NVIDIA's, a MIG profile, or one called gpu."""
    return resource in GPU_RESOURCES or is_mig(resource) or (is_extended(resource) and resource.endswith("/gpu"))


def own_resource(resource: str) -> str | None:
    """The resource of a node in an allocation: None stands for `nvidia.com/gpu`."""
    return None if resource == RESOURCE_GPU else resource


def labels_prefix(resource: str) -> str:
    """What GPU feature discovery puts before `.count`, `.product`, `.memory` and `.replicas`. Renamed shared GPUs keep
    the labels of `nvidia.com/gpu`."""
    return RESOURCE_GPU if resource == RESOURCE_SHARED_GPU else resource


def offered_resources(chosen: str | None, allocatable: Mapping[str, Any]) -> tuple[str, ...]:
    """The resources whose devices are a node's GPUs: the one that its pool has chosen; else NVIDIA's.

    A node without whole GPUs that offers one MIG profile offers that. Of several profiles none is chosen: their GPU
    types differ.
    """
    if chosen is not None:
        return (chosen,)
    if not any(name in allocatable for name in GPU_RESOURCES):
        profiles = sorted(filter(is_mig, allocatable))
        if len(profiles) == 1:
            return (profiles[0],)
    return GPU_RESOURCES


def device_counts(resources: Mapping[str, Any]) -> Counter[str]:
    """The extended resources of a resource list. Raises ValueError naming the quantity that does not parse."""
    return Counter({name: whole_count(amount) for name, amount in resources.items() if is_extended(name)})


def count_of(counts: Mapping[str, int], resources: Iterable[str]) -> int:
    """How many devices of these resources there are."""
    return sum(counts.get(name, 0) for name in resources)


def counted_as(resource: str) -> str:
    """What limits of quotas call a node's devices in a snapshot."""
    return {RESOURCE_GPU: "gpus", RESOURCE_SHARED_GPU: "shared_gpus"}.get(resource, resource)
