"""Nodes whose GPUs are not called nvidia.com/gpu, under a real API server and kube-scheduler."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from support.extender.world import GIB, Operator, Replica
from support.waiting import eventually
from synergy_kube import KubeClient
from synergy_kube.resources import GPU_POOLS, NODES, PODS

pytestmark = pytest.mark.integration

NODE = "fake-mixed-devices"
MIG = "nvidia.com/mig-1g.10gb"


@pytest_asyncio.fixture
async def mixed_node(kube: KubeClient, extender: Replica) -> AsyncIterator[str]:
    """A fake node with a whole GPU, and one cut into seven of a profile, which a pool plans."""
    labels = {"type": "kwok", "kubernetes.io/hostname": NODE, "nvidia.com/gpu.product": "Mixed"}
    capacity = {"cpu": "24", "memory": "64Gi", "pods": "50", "nvidia.com/gpu": "1", MIG: "7"}
    metadata = {"name": NODE, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    await kube.create(NODES, {"metadata": metadata, "status": {"capacity": capacity, "allocatable": capacity}})
    spec = {"gpuType": "Mixed-1g", "nodeSelector": {"kubernetes.io/hostname": NODE}, "devices": {"resource": MIG}}
    await kube.create(GPU_POOLS, {"metadata": {"name": "profiles"}, "spec": spec})

    async def seen() -> bool:
        return any(one.name == NODE and one.gpus == 7 for one in extender.extender.cache.capacities())

    await eventually(seen, seconds=20, what="the node and its pool to be seen", every=0.05)
    yield NODE
    await kube.delete(GPU_POOLS, "profiles")
    await kube.delete(NODES, NODE)


async def test_jobs_of_a_mig_profile_get_what_other_pods_leave_of_it(
    operator: Operator, kube_scheduler: object, mixed_node: str
) -> None:
    """A pod of another scheduler holds two of seven: a job of six waits, and one of five is bound beside it."""
    other = operator.worker(
        "x", 1, 0, {"node": mixed_node, "gpus": 2, "resource": MIG, "cpuMillis": 1, "memoryBytes": 1}
    )
    other["metadata"] = {"name": "other"}
    other["spec"] |= {"schedulerName": "default-scheduler", "nodeName": mixed_node}
    await operator.kube.create(PODS, other, operator.namespace)
    whole = operator.worker("y", 1, 0, {"node": mixed_node, "gpus": 1, "cpuMillis": 1, "memoryBytes": 1})
    whole["metadata"] = {"name": "whole"}
    whole["spec"] |= {"schedulerName": "default-scheduler", "nodeName": mixed_node}
    await operator.kube.create(PODS, whole, operator.namespace)
    await operator.bound("other")
    await operator.bound("whole")
    most = {"min": {"cpu": "1", "memory": f"{GIB}"}}
    await operator.submit("six", gpus=6, gpuTypes=["Mixed-1g"], template=operator.only_on(mixed_node), resources=most)
    assert (await operator.queue("six"))["reason"]
    await operator.submit("five", gpus=5, gpuTypes=["Mixed-1g"], template=operator.only_on(mixed_node), resources=most)
    granted = await operator.allocation("five", state="Granted", admitted=True)
    (share,) = granted["workers"]
    assert (share["gpus"], share["resource"], granted["gpuType"]) == (5, MIG, "Mixed-1g")
    (pod,) = await operator.start("five", granted)
    assert pod["spec"]["containers"][0]["resources"]["limits"][MIG] == "5"
    await operator.bound(pod["metadata"]["name"], seconds=60)
    assert "allocation" not in (await operator.job("six"))["status"]
