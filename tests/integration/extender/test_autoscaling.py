"""Pools that grow: requests for nodes on the real API server, answered by a stand-in for the autoscaler."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from support.extender.world import TOLERATIONS, Object, Operator, Replica
from support.on_cluster.autoscaler import Autoscaler, provisioning_requests
from support.waiting import eventually
from synergy_api import names
from synergy_kube import KubeClient
from synergy_kube.resources import GPU_POOLS, NODES, TRAINING_JOBS

pytestmark = pytest.mark.integration


@pytest_asyncio.fixture
async def autoscaler(kube: KubeClient, home: str, extender: Replica) -> AsyncIterator[Autoscaler]:
    """The stand-in, and the resource that it reads."""
    async with provisioning_requests(kube):
        one = Autoscaler(kube, home)
        yield one
        await one.remove_all()


@asynccontextmanager
async def growing(kube: KubeClient, name: str, **how: Any) -> AsyncIterator[None]:
    """A pool without a node, that may grow."""
    node = {"gpus": 8, "cpu": "24", "memory": "96Gi"}
    autoscaling = {"maxNodes": 4, "waitSeconds": 0, "node": node, "idleSeconds": 2, **how}
    spec = {"nodeSelector": {"pool": name}, "gpuType": f"type-{name}", "autoscaling": autoscaling}
    await kube.apply(GPU_POOLS, name, {"spec": spec}, manager="tests")
    try:
        yield
    finally:
        await kube.delete(GPU_POOLS, name)


def job(pool: str, gpus: int) -> Object:
    container = {"name": "train", "image": "fake", "command": ["train"]}
    place = {"nodeSelector": {"pool": pool}, "tolerations": TOLERATIONS}
    template = {"spec": {"containers": [container], **place}}
    return {"gpus": gpus, "gpuTypes": [f"type-{pool}"], "profile": {"mode": "Skip"}, "template": template}


async def condition(kube: KubeClient, pool: str, reason: str) -> Object:
    """The pool's condition Autoscaling, once it has this reason."""

    async def said() -> Object | None:
        status = (await kube.get(GPU_POOLS, pool)).get("status") or {}
        found = [one for one in status.get("conditions") or [] if one["type"] == "Autoscaling"]
        return found[0] if found and found[0]["reason"] == reason else None

    return await eventually(said, seconds=20, what=f"{reason} of pool {pool}", every=0.05)


async def queued(operator: Operator, name: str, reason: str) -> Object:
    async def told() -> Object | None:
        queue = await operator.queue(name)
        return queue if queue["reason"] == reason else None

    return await eventually(told, seconds=20, what=f"{name} to wait for {reason}", every=0.05)


async def test_a_gang_gets_nodes_that_were_not_there_and_they_are_told_idle_when_it_has_gone(
    kube: KubeClient, operator: Operator, autoscaler: Autoscaler
) -> None:
    async with growing(kube, "cloud"):
        await operator.submit("gang", **job("cloud", 16))
        request = await autoscaler.asked("cloud")
        assert [one["count"] for one in request["spec"]["podSets"]] == [2]
        queue = await queued(operator, "gang", "NodesPromised")
        assert "are on 2 nodes of GPUPool/cloud that are asked for" in queue["message"]
        assert "They are expected at" in queue["message"]
        assert (await operator.job("gang"))["status"].get("allocation") is None, "nothing is bound to a promise"
        await condition(kube, "cloud", "NodesAskedFor")
        assert len(await autoscaler.requests()) == 1, "what is promised is not asked for again"

        await autoscaler.provide(request)
        place = await operator.allocation("gang", state="Granted")
        assert sorted(share["node"] for share in place["workers"]) == sorted(autoscaler.nodes)

        async def over() -> bool:
            return await autoscaler.requests() == []

        await eventually(over, seconds=10, what="the request to be deleted", every=0.05)
        await condition(kube, "cloud", "NoNodesAskedFor")

        async def marks(node: str) -> dict[str, str]:
            metadata = (await kube.get(NODES, node))["metadata"]
            told = {**metadata["labels"], **metadata["annotations"]}
            ours = (names.LABEL_IDLE, names.ANNOTATION_IDLE_SINCE, names.ANNOTATION_SCALE_DOWN_DISABLED)
            return {name: told[name] for name in ours if name in told}

        for node in autoscaler.nodes:

            async def kept(node: str = node) -> bool:
                return await marks(node) == {names.ANNOTATION_SCALE_DOWN_DISABLED: "true"}

            await eventually(kept, seconds=10, what=f"{node} to be kept", every=0.05)
        await kube.delete(TRAINING_JOBS, "gang", operator.namespace)
        for node in autoscaler.nodes:

            async def idle(node: str = node) -> bool:
                return (await marks(node)).keys() == {names.LABEL_IDLE, names.ANNOTATION_IDLE_SINCE}

            await eventually(idle, seconds=20, what=f"{node} to be told idle", every=0.1)

        await operator.submit("next", **job("cloud", 8))
        (share,) = (await operator.allocation("next", state="Granted"))["workers"]

        async def in_use() -> bool:
            return await marks(share["node"]) == {names.ANNOTATION_SCALE_DOWN_DISABLED: "true"}

        await eventually(in_use, seconds=10, what="the node to be in use again", every=0.05)
        assert await autoscaler.requests() == [], "a job that fits asks for nothing"


async def test_a_request_that_fails_or_is_refused_is_told_and_the_job_waits_as_before(
    kube: KubeClient, operator: Operator, home: str, extender: Replica
) -> None:
    async with growing(kube, "refused"):
        await operator.submit("a", **job("refused", 8))
        told = await condition(kube, "refused", "NodeRequestRefused")
        assert "404" in told["message"]
        await kube.delete(TRAINING_JOBS, "a", operator.namespace)
    async with provisioning_requests(kube), growing(kube, "empty"):
        autoscaler = Autoscaler(kube, home)
        await operator.submit("b", **job("empty", 8))
        request = await autoscaler.asked("empty")
        await queued(operator, "b", "NodesPromised")
        await autoscaler.refuse(request, "out of quota for eight GPUs")
        told = await condition(kube, "empty", "NodesNotProvided")
        assert "1 nodes that were asked for did not come: out of quota for eight GPUs. Failure 1" in told["message"]

        async def waits() -> bool:
            return (await operator.queue("b"))["message"].endswith("since a request has failed.")

        await eventually(waits, seconds=20, what="the job to be told", every=0.05)
        assert [one["metadata"]["name"] for one in await autoscaler.requests()] == [request["metadata"]["name"]]
