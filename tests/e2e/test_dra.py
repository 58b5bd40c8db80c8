"""Jobs on GPUs of DRA, on a real kubelet: a claim for each worker, prepared by the driver on the planned device."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

import synergy_devcluster
from support.on_cluster.jobs import matrix, reaches, restricted_template, submit
from support.on_cluster.namespaces import alone_on
from support.waiting import eventually
from synergy_api.names import worker_pod_name
from synergy_devcluster import gpus
from synergy_devcluster.dra.objects import DRIVER, uuids_of
from synergy_devcluster.node.node import REAL_LABEL
from synergy_devcluster.real_nodes import REAL_NODE
from synergy_kube import KubeClient
from synergy_kube.resources import GPU_POOLS, RESOURCE_CLAIMS, TRAINING_JOBS

pytestmark = pytest.mark.e2e

Json = dict[str, Any]
POOL = "dra-a100"
TRAIN = """
import sys, time, synergy_job
for step in synergy_job.iterate(range(int(sys.argv[1])), save=lambda step: None, load=lambda: None):
    time.sleep(0.05)
"""


@pytest_asyncio.fixture
async def dra(
    devcluster: synergy_devcluster.Cluster, kube: KubeClient, policy: Callable[..., Awaitable[None]]
) -> AsyncIterator[tuple[str, ...]]:
    """Two GPUs of DRA on the real node, for two clients each; their UUIDs."""
    await alone_on(kube, REAL_NODE)
    await policy(policy="fifo", colocation="auto", roundSeconds=10)
    gpus.offer_dra(devcluster, 2, replicas=2)
    spec = {
        "gpuType": "DRA-A100",
        "nodeSelector": {REAL_LABEL: "true"},
        "devices": {"backend": "DRA", "deviceClass": DRIVER, "attributes": {"type": "gpu"}},
        "sharing": {"mode": "MPS", "replicas": 2},
    }
    await kube.apply(GPU_POOLS, POOL, {"spec": spec}, manager="tests")
    yield uuids_of(REAL_NODE, 2)
    await alone_on(kube, REAL_NODE)  # the kubelet ends no pod whose claims it cannot take back
    await kube.delete(GPU_POOLS, POOL)
    gpus.offer_dra(devcluster, 0)


def job(steps: int, **more: Any) -> Json:
    usage = {"gpuType": "DRA-A100", "compute": 0.4, "bandwidth": 0.2, "memory": "8Gi"}
    return {
        "gpus": 1,
        "steps": steps,
        "gpuTypes": ["DRA-A100"],
        "sharing": {"allowed": True, "usage": [usage]},
        "resources": {"max": {"cpu": "100m", "memory": "128Mi"}},
        "profile": {"mode": "Provided", "matrices": [matrix("DRA-A100", {50: 8.0, 100: 10.0}, 64 << 20)]},
        "template": restricted_template(["python3", "-c", TRAIN, str(steps)]),
        **more,
    }


def _trains(status: Json) -> bool:
    """Whether it told of its GPU in its newest run."""
    allocation, progress = status.get("allocation") or {}, status.get("progress") or {}
    runs = status.get("phase") == "Running" and allocation.get("state") == "Granted"
    return runs and progress.get("run") == allocation["run"] and bool(progress.get("gpuUUIDs"))


async def devices(kube: KubeClient, namespace: str) -> dict[str, list[str]]:
    """By claim, the devices that it has been allocated."""
    items = (await kube.list(RESOURCE_CLAIMS, namespace))["items"]
    allocations = {item["metadata"]["name"]: (item.get("status") or {}).get("allocation") or {} for item in items}
    return {
        name: [one["device"] for one in (allocation.get("devices") or {}).get("results") or []]
        for name, allocation in allocations.items()
    }


async def test_three_jobs_have_two_gpus_of_dra_and_the_partners_are_on_the_planned_one(
    dra: tuple[str, ...], kube: KubeClient, namespace: str
) -> None:
    for name in ("a", "b", "c"):
        await submit(kube, namespace, name, **job(10**6))

    async def told() -> dict[str, Json] | None:
        items = (await kube.list(TRAINING_JOBS, namespace))["items"]
        found = {item["metadata"]["name"]: item.get("status") or {} for item in items}
        return found if sum(map(_trains, found.values())) == 3 else None

    found = await eventually(told, seconds=120, what="three jobs to train")
    given = {name: status["allocation"]["workers"][0]["deviceIds"] for name, status in found.items()}
    seen = {name: status["progress"]["gpuUUIDs"] for name, status in found.items()}
    assert given == seen, "containers find the planned GPU"
    assert {uuid for (uuid,) in given.values()} == set(dra)
    for name, status in found.items():
        asked = {partner.partition("/")[2] for partner in status["allocation"]["sharedGpu"].get("asked", [])}
        assert asked == {other for other in given if other != name and given[other] == given[name]}
    claims = await devices(kube, namespace)
    for name, status in found.items():
        own = claims[worker_pod_name(name, status["allocation"]["run"], 0)]
        assert own == [f"gpu-{dra.index(uuid)}" for uuid in given[name]]


async def test_a_job_ends_on_a_gpu_of_dra_and_leaves_no_claim(
    dra: tuple[str, ...], kube: KubeClient, namespace: str
) -> None:
    """A claim of somebody else has the name that its first run needs: the second run takes another."""
    taken = worker_pod_name("short", 1, 0)
    requests = [{"name": "mine", "exactly": {"deviceClassName": DRIVER}}]
    theirs = {"metadata": {"name": taken}, "spec": {"devices": {"requests": requests}}}
    await kube.create(RESOURCE_CLAIMS, theirs, namespace)
    await submit(kube, namespace, "short", **job(40, sharing={"allowed": False}))
    ended = await reaches(kube, namespace, "short", "Succeeded", seconds=90)
    assert ended["status"]["allocation"]["run"] == 2

    async def gone() -> bool:
        return list(await devices(kube, namespace)) == [taken]

    await eventually(gone, seconds=30, what="the claim to be gone")
