"""Devices of DRA on nodes: what ResourceSlices offer, what claims hold, and what a pool makes of it."""

from typing import Any

import pytest
from pydantic import ValidationError

from synergy_api.cluster.pool import Pool, with_devices
from synergy_api.cluster.pools import NodeCapacity, node_capacities
from synergy_api.cluster.slices import DeviceKey, devices_by_node, held_devices, read_slice
from synergy_api.devices import class_resource, counted_as, device_class
from synergy_api.resources.gpu_pool import GPUPoolSpec

DRIVER = "gpu.example.com"


def device(index: int, **more: Any) -> dict[str, Any]:
    attributes = {"uuid": {"string": f"GPU-{index}"}, "type": {"string": "gpu"}, "index": {"int": index}}
    return {"name": f"gpu-{index}", "attributes": attributes, "capacity": {"memory": {"value": "40Gi"}}, **more}


def resource_slice(
    *devices: dict[str, Any], generation: int = 1, node: str | None = "n", **spec: Any
) -> dict[str, Any]:
    pool = {"name": "n", "generation": generation, "resourceSliceCount": 1}
    given = {} if node is None else {"nodeName": node}
    return {
        "metadata": {"name": "s"},
        "spec": {"driver": DRIVER, "pool": pool, "devices": list(devices), **given, **spec},
    }


def pool(*, sharing: dict[str, Any] | None = None, **devices: Any) -> Pool:
    chosen = {"backend": "DRA", "deviceClass": DRIVER, **devices}
    spec = {"nodeSelector": {"kind": "it"}, "gpuType": "T", "devices": chosen, "sharing": sharing or {}}
    return Pool("p", GPUPoolSpec.model_validate(spec))


def capacity(of_pool: Pool, *slices: dict[str, Any]) -> NodeCapacity:
    node = {
        "metadata": {"name": "n", "labels": {"kind": "it"}},
        "status": {
            "allocatable": {"cpu": "8", "nvidia.com/gpu": "4"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    (found,) = node_capacities(with_devices([node], map(read_slice, slices)), [of_pool])
    return found


def test_a_nodes_gpus_are_the_healthy_devices_of_the_pools_driver() -> None:
    ill = device(1, taints=[{"key": "x", "effect": "NoSchedule"}])
    noted = device(2, taints=[{"key": "x", "effect": "None"}])
    found = capacity(pool(), resource_slice(device(0), ill, noted))
    assert (found.gpus, found.gpus_built_in, found.resource) == (2, 3, class_resource(DRIVER))
    assert [one.uuid for one in found.devices] == ["GPU-0", "GPU-1", "GPU-2"]
    assert capacity(pool(driver="other"), resource_slice(device(0))).gpus == 0


def test_attributes_leave_other_devices_out() -> None:
    nic = {"name": "nic", "attributes": {f"{DRIVER}/type": {"string": "nic"}}}
    slices = resource_slice(device(0), nic)
    assert (capacity(pool(), slices).gpus, capacity(pool(attributes={"type": "gpu"}), slices).gpus) == (2, 1)
    assert capacity(pool(attributes={"type": "nic"}), slices).gpus == 1


def test_gpus_are_shared_where_several_claims_may_have_them_and_can_name_them() -> None:
    mps = {"mode": "MPS", "replicas": 2}
    free = device(0, allowMultipleAllocations=True)
    shared = capacity(pool(sharing=mps), resource_slice(free, device(1, allowMultipleAllocations=True)))
    assert (shared.gpus, shared.clients, shared.devices_per_gpu, shared.by_order) == (2, 2, 2, False)
    assert capacity(pool(sharing=mps), resource_slice(free, device(1))).clients == 1
    nameless = {"name": "gpu-0", "allowMultipleAllocations": True}
    assert capacity(pool(sharing=mps), resource_slice(nameless)).clients == 1


def test_of_a_drivers_pool_only_the_newest_generation_counts() -> None:
    old, new = resource_slice(device(0), device(1)), resource_slice(device(5), generation=2)
    assert [one.key.name for one in devices_by_node(map(read_slice, [old, new]))["n"]] == ["gpu-5"]


def test_a_device_may_be_on_a_node_of_its_own_or_on_none() -> None:
    own = resource_slice(device(0, nodeName="m"), device(1), node=None, perDeviceNodeSelection=True)
    assert {name: len(devices) for name, devices in devices_by_node([read_slice(own)]).items()} == {"m": 1}


def test_a_claim_holds_what_it_was_allocated_but_for_administrators() -> None:
    result = {"request": "r", "driver": DRIVER, "pool": "n", "device": "gpu-0"}
    results = [result, {**result, "device": "gpu-1", "adminAccess": True}]
    claim = {"metadata": {"name": "c"}, "status": {"allocation": {"devices": {"results": results}}}}
    assert held_devices(claim) == (DeviceKey(DRIVER, "n", "gpu-0"),)
    assert held_devices({"metadata": {"name": "c"}}) == ()


def test_a_device_class_is_a_resource_of_quotas() -> None:
    resource = class_resource(DRIVER)
    assert resource == "gpu.example.com.deviceclass.resource.k8s.io/devices"
    assert (device_class(resource), device_class("nvidia.com/gpu")) == (DRIVER, None)
    assert counted_as(resource) == resource


def test_an_attribute_is_a_text() -> None:
    with pytest.raises(ValidationError):
        pool(attributes={"index": 1})


def test_the_memory_of_a_gpu_is_the_least_of_the_devices() -> None:
    small = device(1, capacity={f"{DRIVER}/memory": {"value": "16Gi"}})
    odd = device(2, capacity={"memory": {"value": "x"}})
    assert capacity(pool(), resource_slice(device(0), small)).gpu_memory_bytes == 16 << 30
    assert capacity(pool(), resource_slice(device(0), odd)).gpu_memory_bytes == 0
