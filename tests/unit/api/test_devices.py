"""What nodes call their GPUs: other vendors' resources, MIG profiles, and what of a node is counted."""

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from synergy_api.cluster.pods import device_requests
from synergy_api.cluster.pool import Pool
from synergy_api.cluster.pools import NodeCapacity, node_capacities, worker_tolerations
from synergy_api.devices import counted_as, is_extended, is_gpu, own_resource
from synergy_api.names import GPU_RESOURCES
from synergy_api.resources.gpu_pool import GPUPoolSpec

MIG = "nvidia.com/mig-1g.10gb"
OTHER_MIG = "nvidia.com/mig-3g.40gb"
AMD = "amd.com/gpu"


def node(allocatable: Mapping[str, str], labels: Mapping[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "n", "labels": {"kind": "it", **(labels or {})}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "24", "memory": "500Gi", **allocatable},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pool(resource: str | None, **more: Any) -> Pool:
    devices = {} if resource is None else {"resource": resource}
    spec = {"nodeSelector": {"kind": "it"}, "gpuType": "its-type", "devices": devices, **more}
    return Pool("p", GPUPoolSpec.model_validate(spec))


def only(made: dict[str, Any], *pools: Pool) -> NodeCapacity:
    (found,) = node_capacities([made], pools)
    return found


def test_a_pool_names_the_resource_of_another_vendor() -> None:
    found = only(node({AMD: "8"}), pool(AMD))
    assert (found.gpus, found.resource, found.gpu_resources, found.gpu_type) == (8, AMD, (AMD,), "its-type")
    assert found.schedulable


def test_the_custom_taint_of_the_vendor_keeps_no_job_away() -> None:
    taint = {"key": AMD, "value": "present", "effect": "NoSchedule"}
    assert only(node({AMD: "8"}, taints=[taint]), pool(AMD)).schedulable
    assert {"key": AMD, "operator": "Exists"} in worker_tolerations(AMD)
    assert not only(node({"nvidia.com/gpu": "8"}, taints=[taint]), pool(None)).schedulable


def test_of_a_mixed_node_the_pools_profile_is_planned_and_nothing_else() -> None:
    found = only(node({"nvidia.com/gpu": "2", MIG: "7", OTHER_MIG: "1"}), pool(MIG))
    assert (found.gpus, found.resource) == (7, MIG)
    assert only(node({"nvidia.com/gpu": "2", MIG: "7"}), pool(None)).gpus == 2


def test_a_pool_whose_resource_the_node_lacks_has_no_gpus_there() -> None:
    assert only(node({"nvidia.com/gpu": "2"}), pool(AMD)).gpus == 0


@pytest.mark.parametrize(
    ("labels", "gpu_type"),
    [
        ({"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"),
        ({f"{MIG}.product": "NVIDIA-H100-MIG-1g.10gb"}, "NVIDIA-H100-MIG-1g.10gb"),
        ({}, ""),
    ],
)
def test_without_a_pool_the_only_profile_of_a_node_is_its_gpu_type(labels: dict[str, str], gpu_type: str) -> None:
    found = only(node({MIG: "7"}, labels))
    assert (found.gpus, found.gpu_type, found.resource) == (7, gpu_type, MIG)
    assert (found.problem is None) == bool(gpu_type)


def test_without_a_pool_several_profiles_are_left_alone() -> None:
    assert node_capacities([node({MIG: "4", OTHER_MIG: "1"})], []) == []


def test_labels_of_the_profile_tell_its_memory_and_its_number() -> None:
    labels = {
        f"{MIG}.count": "7",
        f"{MIG}.memory": "9856",
        "nvidia.com/gpu.count": "1",
        "nvidia.com/gpu.memory": "81559",
    }
    found = only(node({MIG: "6"}, labels), pool(MIG))
    assert (found.gpus, found.gpus_built_in, found.gpu_memory_bytes) == (6, 7, 9856 << 20)


@pytest.mark.parametrize("resource", ["gpu", "amd.com/", "/gpu", "Amd.com/gpu", "amd.com/gpu/x"])
def test_what_is_no_resource_name_is_no_pools(resource: str) -> None:
    with pytest.raises(ValidationError):
        pool(resource)


@pytest.mark.parametrize(
    ("name", "extended", "gpu"),
    [
        ("nvidia.com/gpu", True, True),
        (MIG, True, True),
        (AMD, True, True),
        ("rdma/hca", True, False),
        ("cpu", False, False),
        ("hugepages-2Mi", False, False),
        ("requests.nvidia.com/gpu", False, False),
        ("attachable.kubernetes.io/x", False, False),
    ],
)
def test_names_tell_what_a_resource_is(name: str, extended: bool, gpu: bool) -> None:
    assert (is_extended(name), is_gpu(name)) == (extended, gpu)


def test_nvidias_gpus_need_no_name() -> None:
    assert (own_resource("nvidia.com/gpu"), own_resource(AMD)) == (None, AMD)
    assert [counted_as(name) for name in (*GPU_RESOURCES, AMD)] == ["gpus", "shared_gpus", AMD]


def _asks(**resources: str) -> dict[str, Any]:
    return {"resources": {"requests": {name.replace("_", "/"): amount for name, amount in resources.items()}}}


def test_devices_of_a_pod_are_summed_over_containers_and_init_containers_need_them_one_after_another() -> None:
    once = {"x/y": "3"}
    spec = {
        "containers": [_asks(x_y="1", cpu="4"), _asks(x_y="1", z_w="2"), {}],
        "initContainers": [
            {**_asks(x_y="1"), "restartPolicy": "Always"},
            {"resources": {"requests": once}},
        ],
    }
    assert device_requests(spec) == {"x/y": 4, "z/w": 2}
    assert device_requests({"containers": [{}]}) == {}
