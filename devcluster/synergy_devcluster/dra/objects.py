"""The driver's objects of the API server: its DeviceClass, and the ResourceSlice of a node."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final

from synergy_devcluster.gpu_plugin.devices import gpu_uuids

DRIVER: Final = "gpu.kube-synergy.dev"
"""Name of the driver and of its DeviceClass."""
SLICES: Final = "/apis/resource.k8s.io/v1/resourceslices"
CONTENT: Final = f"{DRIVER}/content"
"""On a ResourceSlice: what it was made from, as the API server writes quantities in another way."""
Object = dict[str, Any]


def device_class() -> Object:
    """The class of all fake GPUs."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": DRIVER},
        "spec": {"selectors": [selector]},
    }


def slice_name(node: str) -> str:
    """The name of a node's ResourceSlice."""
    return f"{node}-{DRIVER}"


def uuids_of(node: str, count: int) -> tuple[str, ...]:
    """The UUIDs of the node's GPUs, which are others than those of the device plugin."""
    return gpu_uuids(f"{node}/dra", count)


def device_name(index: int) -> str:
    """The name of a GPU within its node's pool."""
    return f"gpu-{index}"


def resource_slice(
    node: str, uuids: Sequence[str], replicas: int, memory_mib: int, unhealthy: frozenset[str]
) -> Object:
    """The node's GPUs. With `replicas` above 1 several claims may have one at the same time."""
    devices = [
        _device(device_name(index), uuid, replicas, memory_mib, healthy=uuid not in unhealthy)
        for index, uuid in enumerate(uuids)
    ]
    content = hashlib.sha256(json.dumps(devices).encode()).hexdigest()
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": slice_name(node), "annotations": {CONTENT: content}},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def _device(name: str, uuid: str, replicas: int, memory_mib: int, *, healthy: bool) -> Object:
    made: Object = {
        "name": name,
        "attributes": {"uuid": {"string": uuid}, "type": {"string": "gpu"}},
        "capacity": {"memory": {"value": f"{memory_mib}Mi"}},
    }
    if replicas > 1:
        made["allowMultipleAllocations"] = True
    if not healthy:
        made["taints"] = [{"key": f"{DRIVER}/unhealthy", "effect": "NoSchedule"}]
    return made
