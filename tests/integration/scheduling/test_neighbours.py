"""Other software in the same cluster, and nodes that come, go and are emptied: plan and ledger follow, and nobody of
others is displaced."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

import synergy_devcluster
from support.on_cluster.jobs import fake_template, matrix, reaches, restricted_template, submit
from support.on_cluster.neighbours import DAEMON_SETS, bound, daemon_set, foreign_pod, label
from support.on_cluster.observer import Observer
from support.programs import run
from support.waiting import eventually
from synergy_devcluster import FakeNodes, gpus
from synergy_devcluster.node.kwok import node_names
from synergy_kube import KubeClient
from synergy_kube.resources import NODES, PODS, TRAINING_JOBS

pytestmark = pytest.mark.integration

GIB = 1 << 30
TAINTED = {"key": "example.com/maintenance", "value": "true"}
Json = dict[str, Any]


@pytest_asyncio.fixture(autouse=True)
async def short_rounds(pools: None, policy: Callable[..., Awaitable[None]]) -> None:
    """First in, first out; a round is as long as a lease."""
    await policy(policy="fifo", mechanism="tune", roundSeconds=5)


@pytest_asyncio.fixture
async def pool(kube: KubeClient) -> AsyncIterator[list[str]]:
    """Two fake nodes with 8 GPUs each that only this test's jobs ask for, as they are again afterwards."""
    names = ["fake-t4-020", "fake-t4-021"]
    await label(kube, names, pool="neighbours")
    yield names
    for name in names:
        await kube.merge_patch(NODES, name, {"spec": {"unschedulable": None, "taints": None}})
    await label(kube, names, pool=None)


def template(**pod: Any) -> Json:
    """Runs until it is deleted, on the pool's nodes."""
    made = fake_template(3600)
    made["spec"] |= {"nodeSelector": {"pool": "neighbours"}, "terminationGracePeriodSeconds": 0, **pod}
    return made


def job(gpus: int, **spec: Any) -> Json:
    """A job of the pool that is as fast with one CPU a GPU as with more."""
    curve = {1000 * gpus: float(gpus), 3000 * gpus: float(gpus)}
    profile = {"mode": "Provided", "matrices": [matrix("T4", curve, gpus * GIB)]}
    common = {"steps": 100, "gpuTypes": ["T4"], "preemption": "Signal", "profile": profile, "template": template()}
    return {"gpus": gpus, **common, **spec}


async def status_of(kube: KubeClient, namespace: str, name: str) -> Json:
    found: Json = (await kube.get(TRAINING_JOBS, name, namespace)).get("status") or {}
    return found


async def placed(
    kube: KubeClient, namespace: str, name: str, holds: Callable[[Json], bool], what: str, *, seconds: float = 60
) -> Json:
    """The job's status once it runs and its allocation is so."""

    async def there() -> Json | None:
        status = await status_of(kube, namespace, name)
        running = status.get("phase") == "Running" and holds(status["allocation"])
        return status if running else None

    return await eventually(there, seconds=seconds, what=f"{name} to run {what}")


def gpus_by_node(allocation: Json) -> dict[str, int]:
    return {share["node"]: share["gpus"] for share in allocation["workers"]}


async def test_pods_and_daemon_sets_of_others_are_counted_and_stay(
    kube: KubeClient, namespace: str, pool: list[str]
) -> None:
    await kube.create(DAEMON_SETS, daemon_set("agent", "neighbours", gpu="1", cpu="2", memory="4Gi"), namespace)
    await bound(kube, namespace, 2, "app=agent")
    await kube.create(PODS, foreign_pod("plain", pool[0], gpu="3", cpu="1", memory="1Gi"), namespace)
    others = {pod["metadata"]["uid"] for pod in await bound(kube, namespace, 3)}
    async with Observer(kube) as observer:
        await submit(kube, namespace, "large", **job(11))
        status = await placed(kube, namespace, "large", lambda a: a["run"] == 1, "beside the others")
        assert gpus_by_node(status["allocation"]) == {pool[0]: 4, pool[1]: 7}
        await submit(kube, namespace, "later", **job(1))
        await kube.create(PODS, foreign_pod("hungry", pool[1], gpu="1", cpu="1", memory="1Gi"), namespace)

        async def told() -> bool:
            queue = (await status_of(kube, namespace, "later")).get("queue") or {}
            return bool(queue.get("reason") == "NoFreeGPU")

        await eventually(told, seconds=20, what="the later job to be told that no GPU is free")
        await kube.delete(PODS, "plain", namespace, grace_seconds=0)
        await placed(kube, namespace, "later", lambda a: gpus_by_node(a) == {pool[0]: 1}, "where the other pod was")
    pods = (await kube.list(PODS, namespace))["items"]
    standing = {pod["metadata"]["uid"] for pod in pods if "nodeName" in pod["spec"]}
    assert len(others - standing) == 1, "of others' pods only the one that was deleted is gone"
    hungry = await kube.get(PODS, "hungry", namespace)
    assert "nodeName" not in hungry["spec"], "a pod that does not fit displaces nobody of ours either"
    assert observer.broken == []


async def test_a_drained_node_s_job_goes_on_elsewhere_and_nothing_comes_until_it_is_uncordoned(
    devcluster: synergy_devcluster.Cluster, kube: KubeClient, namespace: str, pool: list[str]
) -> None:
    await kube.create(DAEMON_SETS, daemon_set("agent", "neighbours", cpu="1", memory="1Gi"), namespace)
    agents = {pod["metadata"]["uid"] for pod in await bound(kube, namespace, 2, "app=agent")}
    await submit(kube, namespace, "moved", **job(2))
    status = await placed(kube, namespace, "moved", lambda a: a["run"] == 1, "first")
    (drained,) = gpus_by_node(status["allocation"])
    (other,) = set(pool) - {drained}
    await run(devcluster, "kubectl", "drain", drained, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=30s")
    status = await placed(kube, namespace, "moved", lambda a: gpus_by_node(a) == {other: 2}, "elsewhere")
    assert (status["allocation"]["run"], status["service"]["failures"]) == (2, 0)
    assert status["service"]["last"]["outcome"] == "Evicted"
    await submit(kube, namespace, "waits", **job(8, placement="Consolidate"))
    assert await _queue_reason(kube, namespace, "waits") == "NoFreeNode"
    await run(devcluster, "kubectl", "uncordon", drained)
    await placed(kube, namespace, "waits", lambda a: gpus_by_node(a) == {drained: 8}, "on the node that is back")
    there = (await kube.list(PODS, namespace, label_selector="app=agent"))["items"]
    assert {pod["metadata"]["uid"] for pod in there} == agents


async def _queue_reason(kube: KubeClient, namespace: str, name: str) -> str:
    async def told() -> str:
        return str(((await status_of(kube, namespace, name)).get("queue") or {}).get("reason", ""))

    return await eventually(told, seconds=20, what=f"{name} to be told why it waits")


async def test_a_taint_keeps_newcomers_away_and_one_that_evicts_moves_who_is_there(
    kube: KubeClient, namespace: str, pool: list[str]
) -> None:
    first, second = pool
    await kube.merge_patch(NODES, second, {"spec": {"taints": [{**TAINTED, "effect": "NoSchedule"}]}})
    tolerating = template(tolerations=[{"key": TAINTED["key"], "operator": "Exists", "effect": "NoSchedule"}])
    await submit(kube, namespace, "bears", **job(8, template=tolerating, placement="Consolidate"))
    await submit(kube, namespace, "avoids", **job(8, placement="Consolidate"))
    await placed(kube, namespace, "avoids", lambda a: gpus_by_node(a) == {first: 8}, "where there is no taint")
    await placed(kube, namespace, "bears", lambda a: gpus_by_node(a) == {second: 8}, "where it alone may")
    await kube.delete(TRAINING_JOBS, "bears", namespace)
    await kube.merge_patch(NODES, second, {"spec": {"taints": None}})
    await kube.merge_patch(NODES, first, {"spec": {"taints": [{**TAINTED, "effect": "NoExecute"}]}})
    status = await placed(kube, namespace, "avoids", lambda a: gpus_by_node(a) == {second: 8}, "away from the taint")
    assert (status["service"]["last"]["outcome"], status["service"]["failures"]) == ("Evicted", 0)


async def test_a_node_that_is_added_is_used_and_one_that_is_removed_is_left(
    devcluster: synergy_devcluster.Cluster, kube: KubeClient, namespace: str, pool: list[str]
) -> None:
    added = FakeNodes("Added", 1, 8, 24, 96 * GIB)
    (name,) = node_names(added)
    curve = {8000: 8.0, 24000: 8.0}
    profile = {"mode": "Provided", "matrices": [matrix(kind, curve, 8 * GIB) for kind in ("Added", "T4")]}
    spec = job(8, gpuTypes=["Added", "T4"], profile=profile, placement="Consolidate")
    for node in pool:
        await kube.merge_patch(NODES, node, {"spec": {"unschedulable": True}})
    await submit(kube, namespace, "early", **spec)
    assert await _queue_reason(kube, namespace, "early") == "NoAllowedNode"
    devcluster.add_nodes((added,))
    await label(kube, [name], pool="neighbours")
    await placed(kube, namespace, "early", lambda a: gpus_by_node(a) == {name: 8}, "on the new node")
    await kube.merge_patch(NODES, pool[0], {"spec": {"unschedulable": None}})
    await kube.delete(NODES, name)
    status = await placed(kube, namespace, "early", lambda a: gpus_by_node(a) == {pool[0]: 8}, "elsewhere", seconds=180)
    assert status["service"]["last"]["outcome"] in ("Evicted", "Yielded"), "lost with the node, or planned away first"
    assert status["service"]["failures"] == 0


async def test_a_gpu_that_turns_unhealthy_is_not_planned_with_until_it_is_well_again(
    devcluster: synergy_devcluster.Cluster, kube: KubeClient, namespace: str
) -> None:
    sleeping = restricted_template(["python3", "-c", "import time; time.sleep(3600)"], terminationGracePeriodSeconds=0)
    profile = {"mode": "Provided", "matrices": [matrix("A100", {100: 1.0, 200: 1.0}, GIB // 8)]}
    spec = job(1, gpuTypes=["A100"], profile=profile, template=sleeping)
    ill = gpus.listed(devcluster)[0].uuid
    for name in ("first", "second"):
        await submit(kube, namespace, name, **spec)
        await reaches(kube, namespace, name, "Running", seconds=60)
    gpus.set_health(devcluster, ill, healthy=False)
    try:
        status = await reaches(kube, namespace, "second", "Queued", seconds=60)
        assert (status["status"]["service"]["failures"], status["status"]["service"]["run"]) == (0, 1)
        first = await status_of(kube, namespace, "first")
        assert (first["phase"], first["allocation"]["run"]) == ("Running", 1)
    finally:
        gpus.set_health(devcluster, ill, healthy=True)
    await placed(kube, namespace, "second", lambda a: a["run"] == 2, "again")
