"""GPUs that are devices of DRA, under a real API server and two real kube-schedulers: the plan picks the device, claims
select it, and what others hold counts."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from support.extender.world import GIB, Object, Operator, Replica
from support.waiting import eventually
from synergy_api import names
from synergy_api.amounts import Amounts
from synergy_api.devices import class_resource
from synergy_kube import KubeClient
from synergy_kube.resources import DEVICE_CLASSES, GPU_POOLS, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, Resource
from synergy_operator.pods.claim import claim, owned_by
from synergy_operator.pods.template import PodShare

pytestmark = pytest.mark.integration

CLAIM_TEMPLATES = Resource("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", namespaced=True)
NODE = "fake-dra-devices"
DRIVER = "gpu.tests.example"
CLASS = class_resource(DRIVER)
UUIDS = [f"GPU-{index}" for index in range(3)]


def device(index: int) -> Object:
    """A GPU of 40 GiB that several claims may have."""
    return {
        "name": f"gpu-{index}",
        "attributes": {"uuid": {"string": UUIDS[index]}, "type": {"string": "gpu"}},
        "capacity": {"memory": {"value": "40Gi"}},
        "allowMultipleAllocations": True,
    }


@pytest_asyncio.fixture
async def dra_node(kube: KubeClient, extender: Replica) -> AsyncIterator[str]:
    """A fake node with three devices of DRA for two clients each, of which one is unhealthy, and one of a NIC."""
    labels = {"type": "kwok", "kubernetes.io/hostname": NODE}
    capacity = {"cpu": "24", "memory": "64Gi", "pods": "50"}
    metadata = {"name": NODE, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    await kube.create(NODES, {"metadata": metadata, "status": {"capacity": capacity, "allocatable": capacity}})
    gpus = f'device.driver == "{DRIVER}" && device.attributes[device.driver].type == "gpu"'
    selected = [{"cel": {"expression": gpus}}]
    await kube.create(DEVICE_CLASSES, {"metadata": {"name": DRIVER}, "spec": {"selectors": selected}})
    ill = {**device(2), "taints": [{"key": "broken", "effect": "NoSchedule"}]}
    nic = {"name": "nic", "attributes": {"type": {"string": "nic"}}}
    pool = {"name": NODE, "generation": 1, "resourceSliceCount": 1}
    spec: Object = {"driver": DRIVER, "nodeName": NODE, "pool": pool, "devices": [device(0), device(1), ill, nic]}
    await kube.create(RESOURCE_SLICES, {"metadata": {"name": NODE}, "spec": spec})
    devices = {"backend": "DRA", "deviceClass": DRIVER, "attributes": {"type": "gpu"}}
    sharing = {"mode": "MPS", "replicas": 2}
    of_pool = {
        "gpuType": "DRA",
        "nodeSelector": {"kubernetes.io/hostname": NODE},
        "devices": devices,
        "sharing": sharing,
    }
    await kube.create(GPU_POOLS, {"metadata": {"name": "dra"}, "spec": of_pool})

    async def seen() -> bool:
        found = [one for one in extender.extender.cache.capacities() if one.name == NODE and one.schedulable]
        return bool(found) and (found[0].gpus, found[0].gpus_built_in, found[0].clients) == (2, 3, 2)

    await eventually(seen, seconds=20, what="the node's devices to be seen", every=0.05)
    yield NODE
    await kube.delete(GPU_POOLS, "dra")
    await kube.delete(RESOURCE_SLICES, NODE)
    await kube.delete(DEVICE_CLASSES, DRIVER)
    await kube.delete(NODES, NODE)


async def start(operator: Operator, name: str, granted: Object) -> Object:
    """The job's only worker with its claim, as the operator makes both."""
    (share,) = granted["workers"]
    manifest = operator.worker(name, granted["run"], 0, share)
    resources = manifest["spec"]["containers"][0]["resources"]
    for part in ("requests", "limits"):
        resources[part] = {name: amount for name, amount in resources[part].items() if name != CLASS}
    resources["claims"] = [{"name": "gpus"}]
    own = manifest["metadata"]["name"]
    manifest["spec"]["resourceClaims"] = [{"name": "gpus", "resourceClaimName": own}]
    manifest["metadata"]["annotations"][names.ANNOTATION_DEVICES] = str(share.get("devices", share["gpus"]))
    pod = await operator.kube.create(PODS, manifest, operator.namespace)
    given = PodShare(
        share["node"], Amounts(share["gpus"], 1, 1), share.get("devices"), CLASS, tuple(share["deviceIds"]),
        share.get("capacity", {}),
    )  # fmt: skip
    owner = {"apiVersion": "v1", "kind": "Pod", "name": own, "uid": pod["metadata"]["uid"]}
    made = owned_by(claim(own, {names.LABEL_JOB: name}, given), owner)
    await operator.kube.create(RESOURCE_CLAIMS, made, operator.namespace)
    return await operator.bound(own, seconds=60)


async def allocated(operator: Operator, name: str) -> list[str]:
    """The devices of a claim once it has some."""

    async def there() -> list[str]:
        item = await operator.kube.get(RESOURCE_CLAIMS, name, operator.namespace)
        results: list[Any] = ((item.get("status") or {}).get("allocation") or {}).get("devices", {}).get("results", [])
        return [one["device"] for one in results]

    return await eventually(there, seconds=30, what=f"claim {name} to be allocated", every=0.05)


async def foreign(operator: Operator, node: str) -> str:
    """Somebody else's pod, with a claim of its own that Kubernetes makes from a template; the device that it got."""
    spec = {"devices": {"requests": [{"name": "gpus", "exactly": {"deviceClassName": DRIVER}}]}}
    template = {"metadata": {"name": "one-gpu"}, "spec": {"spec": spec}}
    await operator.kube.create(CLAIM_TEMPLATES, template, operator.namespace)
    pod = operator.worker("x", 1, 0, {"node": node, "gpus": 1, "cpuMillis": 100, "memoryBytes": GIB})
    pod["metadata"] = {"name": "foreign"}
    pod["spec"] |= {
        "schedulerName": "default-scheduler",
        "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "one-gpu"}],
    }
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}, "claims": [{"name": "g"}]}
    await operator.kube.create(PODS, pod, operator.namespace)
    item = await operator.bound("foreign", seconds=60)
    (made,) = item["status"]["resourceClaimStatuses"]
    (found,) = await allocated(operator, made["resourceClaimName"])
    return found


async def test_a_job_gets_the_device_that_a_claim_of_others_leaves_and_kube_scheduler_allocates_it(
    operator: Operator, kube_scheduler: object, dra_node: str
) -> None:
    taken = await foreign(operator, dra_node)
    await operator.submit("two", gpus=2, gpuTypes=["DRA"], template=operator.only_on(dra_node))
    await operator.submit("one", gpus=1, gpuTypes=["DRA"], template=operator.only_on(dra_node))
    granted = await operator.allocation("one", state="Granted", admitted=True)
    (share,) = granted["workers"]
    left = ({"gpu-0", "gpu-1"} - {taken}).pop()
    assert (share["resource"], share["devices"]) == (CLASS, 2)
    assert share["deviceIds"] == [UUIDS[int(left[-1])]]
    assert share["capacity"] == {"memory": str(40 << 30)}, "alone it asks for all of the device"
    pod = await start(operator, "one", granted)
    assert await allocated(operator, pod["metadata"]["name"]) == [left]
    assert "allocation" not in (await operator.job("two"))["status"], "of two GPUs one is somebody else's"
