"""A foreign pod takes part of a shared GPU: the bind that would break the pairing is refused in words."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from support.extender.world import GIB, Operator, Replica
from support.waiting import eventually
from synergy_kube import KubeClient
from synergy_kube.resources import GPU_POOLS, NODES, PODS

pytestmark = pytest.mark.integration

NODE = "fake-shared"


@pytest_asyncio.fixture
async def shared_node(kube: KubeClient, extender: Replica, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """A fake node of four GPUs for two clients each, whose plugin packs; they are called as the test wants it."""
    resource = getattr(request, "param", "nvidia.com/gpu")
    labels = {
        "type": "kwok",
        "kubernetes.io/hostname": NODE,
        "nvidia.com/gpu.product": "Shared-SHARED",
        "nvidia.com/gpu.count": "4",
        "nvidia.com/gpu.memory": "16384",
        "nvidia.com/gpu.replicas": "2",
        "nvidia.com/gpu.sharing-strategy": "mps",
    }
    capacity = {"cpu": "24", "memory": "64Gi", "pods": "50", resource: "8"}
    annotations = {"kwok.x-k8s.io/node": "fake"}
    status = {"capacity": capacity, "allocatable": capacity}
    await kube.create(
        NODES, {"metadata": {"name": NODE, "labels": labels, "annotations": annotations}, "status": status}
    )
    sharing = {"mode": "MPS", "replicas": 2, "preference": "Packed"}
    spec = {"gpuType": "Shared", "nodeSelector": {"kubernetes.io/hostname": NODE}, "sharing": sharing}
    await kube.create(GPU_POOLS, {"metadata": {"name": "shared"}, "spec": spec})

    async def seen() -> bool:
        return any(
            one.name == NODE and one.by_order and one.schedulable for one in extender.extender.cache.capacities()
        )

    await eventually(seen, seconds=20, what="the node and its pool to be seen", every=0.05)
    yield NODE
    await kube.delete(GPU_POOLS, "shared")
    await kube.delete(NODES, NODE)


def foreign(operator: Operator, node: str) -> dict[str, Any]:
    """Somebody else's pod with part of a GPU."""
    pod = operator.worker("x", 1, 0, {"node": node, "gpus": 1, "cpuMillis": 1000, "memoryBytes": GIB})
    pod["metadata"] = {"name": "foreign"}
    pod["spec"] |= {"schedulerName": "default-scheduler", "nodeName": node}
    return pod


async def test_a_pod_that_would_get_another_gpu_than_planned_is_refused_until_it_would_not(
    operator: Operator, kube_scheduler: object, shared_node: str
) -> None:
    await operator.submit("whole", gpuTypes=["Shared"], template=operator.only_on(shared_node))
    granted = await operator.allocation("whole", state="Granted", admitted=True)
    assert granted["workers"][0]["devices"] == 2
    assert "asked" not in granted["sharedGpu"]
    await operator.kube.create(PODS, foreign(operator, shared_node), operator.namespace)
    await operator.bound("foreign")

    (pod,) = await operator.start("whole", granted)
    told = f"pod {operator.namespace}/foreign holds part of a GPU outside the plan: this one would join it"

    async def refused() -> bool:
        item = await operator.kube.get(PODS, pod["metadata"]["name"], operator.namespace)
        return any(told in one.get("message", "") for one in item["status"].get("conditions") or [])

    await eventually(refused, seconds=20, what="the bind to be refused in words", every=0.05)
    await operator.kube.delete(PODS, "foreign", operator.namespace, grace_seconds=0)
    await operator.bound(pod["metadata"]["name"], seconds=60)


@pytest.mark.parametrize("shared_node", ["nvidia.com/gpu.shared"], indirect=True)
async def test_a_job_of_two_gpus_gets_all_devices_of_both_by_their_other_name(
    operator: Operator, kube_scheduler: object, shared_node: str
) -> None:
    await operator.submit("two", gpus=2, gpuTypes=["Shared"], template=operator.only_on(shared_node))
    granted = await operator.allocation("two", state="Granted", admitted=True)
    (share,) = granted["workers"]
    assert (share["gpus"], share["devices"], share["resource"]) == (2, 4, "nvidia.com/gpu.shared")
    (pod,) = await operator.start("two", granted)
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu.shared"] == "4"
    await operator.bound(pod["metadata"]["name"], seconds=60)
