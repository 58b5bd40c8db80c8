"""A TrainingJob whose quota is Kueue's: admitted, evicted and resumed by `suspend`. Kueue's part is played by
`support.on_cluster.kueue`, by its published contract for external jobs.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from support.on_cluster.jobs import fake_template, reaches
from support.on_cluster.kueue import DEFINITION, QUEUE_LABEL, WORKLOADS, Finished, Kueue, condition, is_active
from support.on_cluster.neighbours import label
from support.waiting import eventually
from synergy_kube import ApiError, KubeClient
from synergy_kube.resources import CUSTOM_RESOURCE_DEFINITIONS, PODS, TRAINING_JOBS

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("scheduling")]

POOL = ("fake-v100-022", "fake-v100-023")


@pytest_asyncio.fixture
async def kueue(kube: KubeClient, namespace: str) -> AsyncIterator[Kueue]:
    """Kueue's part, its Workloads, and the nodes of its flavor."""
    await kube.create(CUSTOM_RESOURCE_DEFINITIONS, DEFINITION)
    await label(kube, list(POOL), pool="kueue")

    async def served() -> bool:
        try:
            await kube.list(WORKLOADS, namespace)
        except ApiError:
            return False
        return True

    await eventually(served, seconds=60, what="Workloads to be served")
    yield Kueue(kube, namespace)
    await label(kube, list(POOL), pool=None)
    await kube.delete(CUSTOM_RESOURCE_DEFINITIONS, DEFINITION["metadata"]["name"])


async def submit(kube: KubeClient, namespace: str, run_seconds: int) -> None:
    spec = {
        "gpus": 2,
        "gpusPerWorker": 1,
        "steps": 1,
        "suspend": True,
        "preemption": "Signal",
        "profile": {"mode": "Skip"},
        "template": fake_template(run_seconds),
    }
    metadata = {"name": "train", "labels": {QUEUE_LABEL: "team"}}
    await kube.create(TRAINING_JOBS, {"metadata": metadata, "spec": spec}, namespace)


async def nodes(kube: KubeClient, namespace: str) -> set[str]:
    pods = (await kube.list(PODS, namespace))["items"]
    return {pod["spec"]["nodeName"] for pod in pods if pod["status"]["phase"] == "Running"}


async def test_kueue_admits_evicts_and_resumes_a_training_job(kube: KubeClient, namespace: str, kueue: Kueue) -> None:
    await submit(kube, namespace, 6)
    waits = await reaches(kube, namespace, "train", "Suspended", seconds=60)
    assert "allocation" not in waits["status"]
    await kueue.enqueue("train")
    workload = await kueue.workload("train")
    (workers,) = workload["spec"]["podSets"]
    assert (workload["spec"]["queueName"], workers["count"]) == ("team", 2)

    await kueue.admit("train", {"pool": "kueue"})
    await reaches(kube, namespace, "train", "Running", seconds=60)
    assert await nodes(kube, namespace) <= set(POOL)
    assert await kueue.follow("train") is None
    ready = condition(await kueue.workload("train"), "PodsReady")
    assert ready["status"] == "True"

    await kueue.evict("train")
    evicted = await reaches(kube, namespace, "train", "Suspended", seconds=60)
    assert not is_active(evicted)
    assert await nodes(kube, namespace) == set()
    assert "nodeSelector" not in evicted["spec"]["template"]["spec"]
    assert await kueue.follow("train") is None
    assert evicted["status"]["service"]["failures"] == 0

    await kueue.admit("train", {"pool": "kueue"})
    await reaches(kube, namespace, "train", "Running", "Succeeded", seconds=60)

    async def ended() -> Finished | None:
        return await kueue.follow("train")

    end = await eventually(ended, seconds=60, what="the job to finish")
    assert end.success
    assert end.message
    assert condition(await kueue.workload("train"), "Finished")["reason"] == "Succeeded"
