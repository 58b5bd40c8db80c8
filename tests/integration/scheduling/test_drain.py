"""An administrator drains a node: its jobs leave at an end of a round before the time, and nobody comes after them."""

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
from synergy_api.timestamps import format_time, parse_time
from synergy_kube import KubeClient
from synergy_kube.resources import GPU_POOLS, NODES, TRAINING_JOBS

pytestmark = pytest.mark.integration

ROUND_S = 5
CHECKPOINT_S = 30
"""The least that the policy can have."""
DRAINED, OTHER = "fake-v100-020", "fake-v100-021"


@pytest_asyncio.fixture
async def two_nodes(kube: KubeClient) -> AsyncIterator[None]:
    """Two fake nodes that only this test's jobs ask for; neither stays drained."""
    await label(kube, [DRAINED, OTHER], pool="drain")
    yield
    await label(kube, [DRAINED, OTHER], pool=None)
    for node in (DRAINED, OTHER):
        await kube.merge_patch(NODES, node, {"metadata": {"annotations": {"kube-synergy.dev/empty-by": None}}})


def command(cluster: synergy_devcluster.Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`kubectl synergy drain`, as an administrator."""
    environ = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    program = [sys.executable, "-c", "from synergy_cli.main import plugin; plugin()"]
    return subprocess.run(
        [*program, "drain", *arguments], env=environ, capture_output=True, text=True, check=False, timeout=120
    )


async def drain(cluster: synergy_devcluster.Cluster, *arguments: str) -> str:
    answer = await asyncio.to_thread(command, cluster, *arguments)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


async def where(kube: KubeClient, namespace: str, name: str) -> tuple[str, str]:
    """State and node of the job's allocation."""
    status = (await kube.get(TRAINING_JOBS, name, namespace)).get("status") or {}
    allocation = status.get("allocation") or {}
    workers = allocation.get("workers") or [{}]
    return allocation.get("state", ""), workers[0].get("node", "")


def job(node: str | None = None) -> dict[str, Any]:
    template = fake_template(3600)
    selector = {"pool": "drain"} | ({"kubernetes.io/hostname": node} if node else {})
    template["spec"] |= {"nodeSelector": selector}
    return {
        "gpus": 8,
        "steps": 1_000_000,
        "gpuTypes": ["V100"],
        "preemption": "Signal",
        "profile": {"mode": "Skip"},
        "template": template,
    }


@pytest.mark.usefixtures("pools", "two_nodes")
@pytest.mark.timeout(600)
async def test_a_drained_node_is_empty_in_time_and_takes_jobs_again_when_the_drain_is_cancelled(
    devcluster: synergy_devcluster.Cluster,
    kube: KubeClient,
    namespace: str,
    policy: Callable[..., Awaitable[None]],
) -> None:
    rounds = {"policy": "fifo", "mechanism": "tune", "roundSeconds": ROUND_S}
    await policy(**rounds, preemption={"maxCheckpointSeconds": CHECKPOINT_S, "minimumRunSeconds": 0, "payback": 0})
    await submit(kube, namespace, "runs", **job(DRAINED))
    await reaches(kube, namespace, "runs", "Running", seconds=60)
    await kube.merge_patch(
        TRAINING_JOBS,
        "runs",
        {"spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": None}}}}},
        namespace,
    )
    asked = time.time()
    empty_by = asked + CHECKPOINT_S + 6 * ROUND_S
    told = await drain(devcluster, DRAINED, "--by", format_time(round(empty_by)))
    assert "leaves at an end of a round before, with a checkpoint" in told
    await asyncio.sleep(ROUND_S)
    assert await where(kube, namespace, "runs") == ("Granted", DRAINED), "there is time yet"

    async def moved() -> bool:
        return await where(kube, namespace, "runs") == ("Granted", OTHER)

    await eventually(moved, seconds=empty_by - time.time() + ROUND_S, what="the job to be on the other node")
    assert time.time() < empty_by
    waited = await drain(devcluster, DRAINED, "--wait", "--by", format_time(round(empty_by)))
    assert "no job of kube-synergy is on it" in waited or f"node/{DRAINED} is empty" in waited

    await submit(kube, namespace, "waits", **job())
    await asyncio.sleep(3 * ROUND_S)
    waits = (await kube.get(TRAINING_JOBS, "waits", namespace))["status"]
    assert waits["phase"] == "Queued"
    assert "takes jobs again" in await drain(devcluster, DRAINED, "--cancel")
    await reaches(kube, namespace, "waits", "Running", seconds=60)
    assert await where(kube, namespace, "waits") == ("Granted", DRAINED)


@pytest.mark.usefixtures("pools", "two_nodes")
async def test_no_job_runs_in_a_pools_maintenance_and_jobs_come_after_it(
    kube: KubeClient, namespace: str, policy: Callable[..., Awaitable[None]]
) -> None:
    await policy(policy="fifo", mechanism="tune", roundSeconds=ROUND_S)
    end = round(time.time() + 20)
    window = {"start": format_time(time.time() - 60), "end": format_time(end)}
    spec = {"gpuType": "V100", "nodeSelector": {"pool": "drain"}, "maintenance": [window]}
    await kube.apply(GPU_POOLS, "a-maintained", {"spec": spec}, manager="tests")
    try:
        await submit(kube, namespace, "later", **job())
        found = await reaches(kube, namespace, "later", "Running", seconds=90)
        assert parse_time(found["status"]["startTime"]) >= end
    finally:
        await kube.delete(GPU_POOLS, "a-maintained")


@pytest.mark.usefixtures("custom_resources", "two_nodes")
async def test_a_time_on_the_node_that_cannot_be_read_is_named_and_can_be_taken_away(
    devcluster: synergy_devcluster.Cluster, kube: KubeClient
) -> None:
    written = {"metadata": {"annotations": {"kube-synergy.dev/empty-by": "tomorrow"}}}
    await kube.merge_patch(NODES, DRAINED, written)
    answer = await asyncio.to_thread(command, devcluster, DRAINED)
    assert answer.returncode == 2
    assert f"node {DRAINED}, annotation kube-synergy.dev/empty-by: 'tomorrow' is not an RFC 3339 time" in answer.stderr
    assert "takes jobs again" in await drain(devcluster, DRAINED, "--cancel")
    assert "is not drained" in await drain(devcluster, DRAINED)


@pytest.mark.usefixtures("custom_resources")
async def test_what_cannot_be_is_refused_by_name(devcluster: synergy_devcluster.Cluster) -> None:
    bad = {
        ("nowhere", "--by", "2h"): "NODE: there is no node nowhere",
        (DRAINED, "--by", "soon"): "--by: 'soon' is no time such as 12h, 7d or 4w",
        (DRAINED, "--by", "2020-01-01T00:00:00Z"): "--by: 2020-01-01T00:00:00Z is in the past",
        (DRAINED, "--by", "2026-13-01T00:00:00Z"): "is not an RFC 3339 time",
        (DRAINED, "--cancel", "--wait"): "--cancel: leave out --by and --wait",
        (DRAINED, "--wait", "--by", "2h", "--dry-run", "server"): "--wait: nothing is changed by --dry-run=server",
    }
    for arguments, words in bad.items():
        answer = await asyncio.to_thread(command, devcluster, *arguments)
        assert (answer.returncode, words in answer.stderr) == (2, True), (arguments, answer.stderr)
    told = await drain(devcluster, DRAINED, "--by", "2h", "--dry-run", "server")
    assert "(dry run)" in told
    assert f"node/{DRAINED} is not drained: give --by" in await drain(devcluster, DRAINED)
