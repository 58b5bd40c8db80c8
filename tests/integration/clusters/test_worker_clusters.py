"""Jobs of a hub run in the worker cluster where they start soonest, and never in two."""

import asyncio
import sys
from typing import Any

import pytest

from support.on_cluster.jobs import GIB, fake_template, matrix, submit
from support.waiting import eventually
from synergy_api.names import ANNOTATION_MAY_START, LABEL_JOB, MANAGED_BY_CLUSTERS, MANAGER_CLUSTERS
from synergy_kube import KubeClient, NotFound
from synergy_kube.resources import PODS, TRAINING_JOBS

pytestmark = pytest.mark.long  # three control planes

Json = dict[str, Any]
V100, T4 = "Tesla-V100-SXM2-16GB", "Tesla-T4"
STEPS_PER_S = 10
"""Of every job, on every type."""


def spec(gpu_type: str, node: str, *, gpus: int, seconds: int, runs_s: int = 3600) -> Json:
    """A job for one node, which trains for so long by its steps; on a node of kwok its pod ends after `runs_s`."""
    template = fake_template(runs_s)
    template["spec"] |= {
        "nodeSelector": {"kubernetes.io/hostname": node},
        "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
    }
    curve = {gpus * 1000: float(STEPS_PER_S), gpus * 2000: float(STEPS_PER_S)}
    matrices = [matrix(gpu_type, curve, gpus * 8 * GIB)]
    return {
        "gpus": gpus,
        "gpuTypes": [gpu_type],
        "steps": seconds * STEPS_PER_S,
        "template": template,
        "profile": {"mode": "Provided", "matrices": matrices},
    }


def for_workers(**fields: Any) -> Json:
    return {**fields, "managedBy": MANAGED_BY_CLUSTERS}


async def until(kube: KubeClient, namespace: str, name: str, *, seconds: float = 40, **want: Any) -> Json:
    """The job once its status has these values: `phase`, `cluster`, `offer`, `fixed` or `offered` (the reason)."""
    last: Json = {}

    async def there() -> Json | None:
        last.clear()
        last.update(await kube.get(TRAINING_JOBS, name, namespace))
        return last if all(_told(last).get(key) == value for key, value in want.items()) else None

    try:
        return await eventually(there, seconds=seconds, what=f"{name} with {want}", every=0.1)
    except AssertionError as error:
        raise AssertionError(f"{error}; its status: {last.get('status')}") from None


def _told(job: Json) -> Json:
    status = job.get("status") or {}
    place = status.get("cluster") or {}
    offered = next((one["reason"] for one in status.get("conditions") or () if one["type"] == "Offered"), None)
    return {"phase": status.get("phase"), "cluster": place.get("name"), "offered": offered, **place}


async def gone(kube: KubeClient, namespace: str, name: str) -> None:
    async def there() -> bool:
        try:
            await kube.get(TRAINING_JOBS, name, namespace)
        except NotFound:
            return True
        return False

    await eventually(there, seconds=40, what=f"{name} to be gone", every=0.1)


async def pods_of(kube: KubeClient, namespace: str, name: str) -> list[Json]:
    return list((await kube.list(PODS, namespace, label_selector=f"{LABEL_JOB}={name}"))["items"])


async def synergy(kubeconfig: object, *arguments: str) -> str:
    """What `kubectl synergy` prints."""
    command = [sys.executable, "-c", "from synergy_cli.main import plugin; plugin()", *arguments]
    process = await asyncio.create_subprocess_exec(
        *command, "--kubeconfig", str(kubeconfig), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    told, _ = await process.communicate()
    assert process.returncode == 0, told.decode()
    return told.decode()


async def test_a_job_runs_in_the_only_cluster_that_has_its_gpu_type_and_the_hub_tells_of_it(clusters: Any) -> None:
    hub, namespace = clusters.hub.kube, clusters.namespace
    await submit(hub, namespace, "short", **for_workers(**spec(T4, "fake-t4-000", gpus=1, seconds=20, runs_s=3)))
    running = await until(hub, namespace, "short", phase="Running", cluster="east", fixed=True)
    assert running["status"]["summary"]["gpus"] == f"1 {T4}"
    assert "cluster: east" in await synergy(clusters.hub.kubeconfig, "why", "short", "-n", namespace)
    done = await until(hub, namespace, "short", phase="Succeeded")
    assert done["status"]["completionTime"]
    writers = {one["manager"] for one in done["metadata"]["managedFields"] if one.get("subresource") == "status"}
    assert writers == {MANAGER_CLUSTERS}, "the hub's operator leaves it alone"
    assert await pods_of(hub, namespace, "short") == []
    await hub.delete(TRAINING_JOBS, "short", namespace)
    await gone(hub, namespace, "short")
    await gone(clusters.east, namespace, "short")


async def test_a_waiting_job_leaves_a_lost_cluster_and_a_started_one_does_not(clusters: Any) -> None:
    hub, east, west, namespace = clusters.hub.kube, clusters.east, clusters.west, clusters.namespace
    node = "fake-v100-000"
    await submit(east, namespace, "busy", **spec(V100, node, gpus=8, seconds=200_000))
    await until(east, namespace, "busy", phase="Running")

    # at once in the west, after days in the east
    await submit(hub, namespace, "first", **for_workers(**spec(V100, node, gpus=2, seconds=600)))
    await until(hub, namespace, "first", cluster="west", fixed=True, offered="StaysInCluster")
    await eventually(lambda: pods_of(west.kube, namespace, "first"), seconds=30, what="its pods in the west")
    copy = await west.kube.get(TRAINING_JOBS, "first", namespace)
    assert copy["metadata"]["annotations"][ANNOTATION_MAY_START] == "1"
    assert "managedBy" not in copy["spec"]

    # after ten minutes in the west, after days in the east
    await submit(hub, namespace, "second", **for_workers(**spec(V100, node, gpus=8, seconds=600)))
    waits = await until(hub, namespace, "second", phase="Queued", cluster="west", offer=1, offered="OfferedToCluster")
    assert not waits["status"]["cluster"]["fixed"]
    assert "west" in await synergy(clusters.hub.kubeconfig, "queue", "-n", namespace)

    west.pause()
    moved = await until(hub, namespace, "second", cluster="east", offer=2)
    assert moved["status"]["cluster"]["fixed"] is False
    stays = await until(hub, namespace, "first", offered="ClusterAway")
    assert (stays["status"]["cluster"]["name"], stays["status"]["cluster"]["offer"]) == ("west", 1)

    west.resume()
    await gone(west.kube, namespace, "second")
    assert await pods_of(west.kube, namespace, "second") == [], "it never started there"
    await until(hub, namespace, "first", cluster="west", offer=1, offered="StaysInCluster")

    await hub.merge_patch(TRAINING_JOBS, "second", {"spec": {"suspend": True}}, namespace)
    await until(hub, namespace, "second", phase="Suspended")
    assert (await east.get(TRAINING_JOBS, "second", namespace))["spec"]["suspend"] is True
    await hub.merge_patch(TRAINING_JOBS, "second", {"spec": {"suspend": False}}, namespace)
    await until(hub, namespace, "second", phase="Queued", cluster="east")

    for name, worker in (("first", west.kube), ("second", east)):
        await hub.delete(TRAINING_JOBS, name, namespace)
        await gone(hub, namespace, name)
        await gone(worker, namespace, name)
    await east.delete(TRAINING_JOBS, "busy", namespace)


async def test_a_copy_that_somebody_deletes_in_its_cluster_ends_the_job(clusters: Any) -> None:
    hub, east, namespace = clusters.hub.kube, clusters.east, clusters.namespace
    await submit(hub, namespace, "lost", **for_workers(**spec(T4, "fake-t4-001", gpus=1, seconds=600)))
    await until(hub, namespace, "lost", phase="Running", cluster="east")
    await east.delete(TRAINING_JOBS, "lost", namespace)
    failed = await until(hub, namespace, "lost", phase="Failed")
    finished = next(one for one in failed["status"]["conditions"] if one["type"] == "Finished")
    assert finished["reason"] == "GoneInCluster"


async def test_a_job_that_no_cluster_takes_is_told_why_by_each(clusters: Any) -> None:
    hub, namespace = clusters.hub.kube, clusters.namespace
    await submit(hub, namespace, "large", **for_workers(**spec("H100", "fake-h100-000", gpus=8, seconds=600)))
    told = await until(hub, namespace, "large", phase="Pending", offered="NoCluster")
    message = next(one["message"] for one in told["status"]["conditions"] if one["type"] == "Offered")
    assert "east: " in message
    assert "west: " in message
    await hub.delete(TRAINING_JOBS, "large", namespace)
    await gone(hub, namespace, "large")
