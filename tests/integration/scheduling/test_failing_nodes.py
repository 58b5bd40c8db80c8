"""Several jobs fail on one node: plans avoid it, one job tries it after a while, and an administrator clears it."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

import synergy_devcluster
from support.on_cluster.jobs import fake_template, reaches, submit
from support.on_cluster.neighbours import label
from support.waiting import eventually
from synergy_api.timestamps import format_time
from synergy_kube import KubeClient
from synergy_kube.resources import EVENTS, GPU_POOLS, NODES, PODS, TRAINING_JOBS

pytestmark = pytest.mark.integration

ROUND_S = 5
BAD, GOOD = "fake-v100-022", "fake-v100-023"


@pytest_asyncio.fixture
async def two_nodes(kube: KubeClient) -> AsyncIterator[None]:
    """Two fake nodes in a pool of their own."""
    await label(kube, [BAD, GOOD], pool="failing")
    spec = {"gpuType": "V100", "nodeSelector": {"pool": "failing"}}
    await kube.apply(GPU_POOLS, "a-failing", {"spec": spec}, manager="tests")
    yield
    await kube.delete(GPU_POOLS, "a-failing")
    await label(kube, [BAD, GOOD], pool=None)
    cleared = {"metadata": {"annotations": {"kube-synergy.dev/failures-cleared": None}}}
    await kube.merge_patch(NODES, BAD, cleared)


def job(*, node: str | None = None) -> dict[str, Any]:
    template = fake_template(3600)
    selector = {"pool": "failing"} | ({"kubernetes.io/hostname": node} if node else {})
    template["spec"] |= {"nodeSelector": selector}
    return {
        "gpus": 4,
        "steps": 1_000_000,
        "gpuTypes": ["V100"],
        "preemption": "Signal",
        "backoffLimit": 0,
        "profile": {"mode": "Skip"},
        "template": template,
    }


async def nodes(cluster: synergy_devcluster.Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`kubectl synergy nodes`, as an administrator."""
    environ = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    program = [sys.executable, "-c", "from synergy_cli.main import plugin; plugin()", "nodes", *arguments]
    return await asyncio.to_thread(
        subprocess.run, program, env=environ, capture_output=True, text=True, check=False, timeout=120
    )


async def fails(kube: KubeClient, namespace: str, name: str) -> None:
    """The job runs on the bad node, and its worker ends with an error."""
    await submit(kube, namespace, name, **job(node=BAD))
    await reaches(kube, namespace, name, "Running", seconds=60)
    await failed_pod(kube, namespace, f"{name}-1-0")
    found = await reaches(kube, namespace, name, "Failed", seconds=60)
    assert [one["node"] for one in found["status"]["service"]["nodeFailures"]] == [BAD]


async def failed_pod(kube: KubeClient, namespace: str, pod: str) -> None:
    """What a kubelet writes of a worker that failed; kwok writes only what goes well."""
    item = await kube.get(PODS, pod, namespace)
    container = item["status"]["containerStatuses"][0]
    started = container["state"]["running"]["startedAt"]
    now = format_time(round(time.time()))
    state = {"terminated": {"exitCode": 1, "reason": "Error", "startedAt": started, "finishedAt": now}}
    status = {"phase": "Failed", "containerStatuses": [{**container, "ready": False, "state": state}]}
    await kube.merge_patch(PODS, pod, {"status": status}, namespace, subresource="status")


async def pool_says(kube: KubeClient) -> dict[str, str]:
    status = (await kube.get(GPU_POOLS, "a-failing")).get("status") or {}
    return {one["node"]: one["state"] for one in status.get("failingNodes") or []}


async def becomes(kube: KubeClient, wanted: dict[str, str], seconds: float) -> None:
    async def so() -> bool:
        return await pool_says(kube) == wanted

    await eventually(so, seconds=seconds, what=f"the pool to say {wanted}")


@pytest.mark.usefixtures("pools", "two_nodes")
@pytest.mark.timeout(300)
async def test_a_node_that_fails_two_jobs_is_avoided_tried_and_cleared(
    devcluster: synergy_devcluster.Cluster,
    kube: KubeClient,
    namespace: str,
    policy: Callable[..., Awaitable[None]],
) -> None:
    failing = {"jobs": 2, "withinSeconds": 600, "retrySeconds": 15, "probeSeconds": 5}
    await policy(policy="fifo", mechanism="tune", roundSeconds=ROUND_S, failingNodes=failing)
    await asyncio.gather(fails(kube, namespace, "one"), fails(kube, namespace, "two"))
    await becomes(kube, {BAD: "Avoided"}, seconds=20)
    told = await nodes(devcluster)
    assert BAD in told.stdout
    assert f"{namespace}/one, {namespace}/two" in told.stdout
    events = (await kube.list(EVENTS, "default", field_selector=f"involvedObject.name={BAD}"))["items"]
    assert "NodeAvoided" in {event["reason"] for event in events}

    await submit(kube, namespace, "waits", **job(node=BAD))
    await submit(kube, namespace, "goes", **job())
    placed = await reaches(kube, namespace, "goes", "Running", seconds=60)
    assert placed["status"]["allocation"]["workers"][0]["node"] == GOOD
    # the node's time has come: the job that waits for it tries it, and proves that it is well
    tried = await reaches(kube, namespace, "waits", "Running", seconds=60)
    assert tried["status"]["allocation"]["workers"][0]["node"] == BAD
    await becomes(kube, {}, seconds=30)

    # it ends, and with it the proof: the failures still count
    await kube.delete(TRAINING_JOBS, "waits", namespace)
    await becomes(kube, {BAD: "Retrying"}, seconds=30)
    cleared = await nodes(devcluster, "--clear", BAD)
    assert cleared.stdout == f"node/{BAD} takes jobs again\n", cleared.stderr
    await becomes(kube, {}, seconds=30)
    assert "no node keeps failing jobs" in (await nodes(devcluster)).stdout
    unknown = await nodes(devcluster, "--clear", "nowhere")
    assert (unknown.returncode, "--clear: there is no node nowhere" in unknown.stderr) == (2, True)
