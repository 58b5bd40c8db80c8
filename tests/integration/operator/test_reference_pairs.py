"""A new job beside a reference on the real API server: two batch Jobs on one shared GPU of a fake node."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from support.operator.stage import GIB, OperatorProcess, Stage, condition, template
from support.waiting import eventually
from synergy_kube import Conflict, KubeClient
from synergy_kube.resources import NODES, SCHEDULING_POLICIES, THROUGHPUT_PROFILES

pytestmark = pytest.mark.integration

NODE = "fake-shared-pairs"
MARKS = [[float(second), 6 * second] for second in range(0, 61, 5)]
TOLD = {"outcome": "measured", "steps_per_second": 8.0, "relative_error": 0.01, "max_rss_bytes": 1 << 28}
MESSAGE = json.dumps(TOLD | {"together": {"marks": MARKS, "gpus": ["GPU-1"]}})
"""Of every pod: 8 steps/s alone, 6 steps/s for a minute beside another."""


@pytest_asyncio.fixture
async def shared_node(kube: KubeClient) -> AsyncIterator[str]:
    """A fake node with one GPU for two clients; its GPU type."""
    labels = {
        "type": "kwok",
        "kubernetes.io/hostname": NODE,
        "nvidia.com/gpu.product": "PairedGPU",
        "nvidia.com/gpu.count": "1",
        "nvidia.com/gpu.memory": "16384",
        "nvidia.com/gpu.replicas": "2",
        "nvidia.com/gpu.sharing-strategy": "mps",
    }
    capacity = {"cpu": "24", "memory": "64Gi", "pods": "50", "nvidia.com/gpu": "2"}
    metadata = {"name": NODE, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    await kube.create(NODES, {"metadata": metadata, "status": {"capacity": capacity, "allocatable": capacity}})
    yield "PairedGPU"
    await kube.delete(NODES, NODE)


@pytest_asyncio.fixture
async def one_pair(kube: KubeClient, operator: OperatorProcess) -> AsyncIterator[None]:
    """The policy in force lets each job take one pair; what was there before is put back."""
    profiling = {"referencePairs": 1, "referencePairSeconds": 20}
    try:
        await kube.create(SCHEDULING_POLICIES, {"metadata": {"name": "default"}, "spec": {"profiling": profiling}})
        made = True
    except Conflict:
        await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": {"profiling": profiling}})
        made = False
    yield
    if made:
        await kube.delete(SCHEDULING_POLICIES, "default")
    else:
        undone = dict.fromkeys(profiling)
        await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": {"profiling": undone}})


def usage(gpu_type: str, model: str) -> dict[str, Any]:
    return {"gpuType": gpu_type, "compute": 0.4, "bandwidth": 0.2, "memory": "2Gi", "model": model}


async def grant(stage: Stage, run: int) -> None:
    """Give the new job all devices of the GPU that it asks for."""
    job = await stage.until(
        "a request", lambda s: (s.get("profile") or {}).get("request") and s.get("service", {}).get("endedRun", 0) < run
    )
    request = job["status"]["profile"]["request"]
    share = {"node": NODE, "gpus": 1, "devices": 2, "cpuMillis": request["cpuMillis"]}
    workers = [share | {"memoryBytes": request["memoryBytes"]}]
    await stage.grant(run=run, purpose="Profile", gpuType=request["gpuType"], workers=workers)


async def bind_until(stage: Stage, what: str, holds: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    """Play the scheduler until `holds(status)`."""

    async def so() -> dict[str, Any] | None:
        for pod in await stage.pods():
            if not pod["spec"].get("nodeName"):
                await stage.bind_pod(pod)
        status: dict[str, Any] = (await stage.job())["status"]
        return status if holds(status) else None

    return await eventually(so, seconds=60, what=what, every=0.05)


async def test_the_pair_runs_as_two_jobs_and_is_kept_in_status_and_profile(
    stage: Stage, kube: KubeClient, shared_node: str, one_pair: None
) -> None:
    matrix = {"gpuType": shared_node, "cpuMillis": [1000], "memoryBytes": [GIB], "stepsPerSecond": [[12.0]]}
    await stage.submit(
        "ref",
        suspend=True,
        gpuTypes=[shared_node],
        profile={"mode": "Provided", "matrices": [matrix]},
        sharing={"allowed": True, "reference": True, "usage": [usage(shared_node, "Ref")]},
        template=template(run_seconds="1", exit_code="0", message=MESSAGE),
    )
    await stage.until("the reference's matrix", lambda s: (s.get("profile") or {}).get("matrices"), name="ref")
    pod = template(run_seconds="1", exit_code="0", message=MESSAGE)
    pod["spec"]["containers"][0]["args"] = [stage.namespace]
    sharing = {"allowed": True, "usage": [usage(shared_node, "New")]}
    await stage.submit(profile={"mode": "Auto", "cpuStep": "8"}, gpuTypes=[shared_node], sharing=sharing, template=pod)
    await grant(stage, 1)
    status = await bind_until(stage, "a shared request", lambda s: s["profile"].get("request", {}).get("shared"))
    profiled = condition(status, "Profiled")
    assert (status["phase"], profiled["reason"]) == ("Profiling", "ReferencePairWaiting")
    await bind_until(stage, "the series to end", lambda s: s.get("service", {}).get("endedRun") == 1)
    await grant(stage, 2)
    status = await bind_until(stage, "the job to be queued", lambda s: s["phase"] in ("Queued", "Failed"))
    profile = status["profile"]
    try:
        (pair,) = profile["pairs"]
        assert (pair["model"], pair["ownModel"], pair["reference"]) == ("Ref", "New", "ref")
        assert (pair["kept"], pair["referenceKept"], pair["seconds"]) == (0.75, 0.5, 60.0)
        assert (status["phase"], status["service"]["last"]["outcome"]) == ("Queued", "Profiled")
        jobs = [job for job in await stage.batch_jobs() if "-p0" in job["metadata"]["name"]]
        asked = [job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] for job in jobs]
        assert [one["nvidia.com/gpu"] for one in asked] == ["1", "1"]
        published = await kube.get(THROUGHPUT_PROFILES, profile["fingerprint"])
        assert [(one["ownModel"], one["model"]) for one in published["spec"]["pairs"]] == [("New", "Ref")]
        assert "reference" not in published["spec"]["pairs"][0], "names of jobs stay in their namespace"
    finally:
        await kube.delete(THROUGHPUT_PROFILES, profile["fingerprint"])
