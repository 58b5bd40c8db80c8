"""Somebody empties the node with the eviction API, as `kubectl drain` does: a training gang saves and goes back into
the queue."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import synergy_devcluster
from support.on_cluster.jobs import logs, reaches, restricted_template, submit
from support.waiting import eventually
from synergy_devcluster.real_nodes import REAL_NODE
from synergy_kube import ApiError, KubeClient, Resource
from synergy_kube.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS, TRAINING_JOBS

pytestmark = pytest.mark.integration

BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", namespaced=True)
TRAINING = """
import time, synergy_job
checkpoint = synergy_job.Checkpoint("/checkpoints/state.pkl")
def load():
    return (checkpoint.read() or {"step": 0})["step"]
for _ in synergy_job.iterate(range(10), save=lambda step: checkpoint.write({"step": step}), load=load):
    time.sleep(0.1)
"""


def template() -> dict[str, Any]:
    """Trains for as long as it is left alone; its checkpoints outlive its pods."""
    made = restricted_template(
        ["python3", "-c", TRAINING],
        volumes=[{"name": "checkpoints", "persistentVolumeClaim": {"claimName": "checkpoints"}}],
    )
    made["spec"]["securityContext"]["fsGroup"] = 65532
    made["spec"]["containers"][0]["volumeMounts"] = [{"name": "checkpoints", "mountPath": "/checkpoints"}]
    return made


async def evict(kube: KubeClient, namespace: str, pod: str) -> None:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    await kube.create_subresource(PODS, pod, "eviction", eviction, namespace)


async def test_an_evicted_worker_takes_its_gang_to_its_checkpoint_and_back_into_the_queue(
    devcluster: synergy_devcluster.Cluster,
    kube: KubeClient,
    namespace: str,
    pools: None,
    policy: Callable[..., Awaitable[None]],
) -> None:
    await policy(policy="fifo", mechanism="tune", roundSeconds=5)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await kube.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "checkpoints"}, "spec": claim}, namespace)
    selector = {"matchLabels": {"kube-synergy.dev/job": "trains"}}
    budget = {"metadata": {"name": "whole"}, "spec": {"minAvailable": 2, "selector": selector}}
    await kube.create(BUDGETS, budget, namespace)
    await submit(
        kube, namespace, "trains", gpus=2, gpusPerWorker=1, steps=100_000, gpuTypes=["A100"],
        profile={"mode": "Skip"}, template=template(),
    )  # fmt: skip

    async def status() -> dict[str, Any]:
        found: dict[str, Any] = (await kube.get(TRAINING_JOBS, "trains", namespace)).get("status") or {}
        return found

    async def trained() -> bool:
        return bool(((await status()).get("progress") or {}).get("steps"))

    await eventually(trained, seconds=90, what="the gang to report steps")
    with pytest.raises(ApiError, match="disruption budget") as refused:
        await evict(kube, namespace, "trains-1-1")
    assert refused.value.code == 429, "a budget keeps the gang whole, from whom it binds"
    await kube.delete(BUDGETS, "whole", namespace)
    await kube.merge_patch(NODES, REAL_NODE, {"spec": {"unschedulable": True}})
    try:
        await evict(kube, namespace, "trains-1-1")
        job = await reaches(kube, namespace, "trains", "Queued", seconds=60)
        service = job["status"]["service"]
        assert (service["last"]["outcome"], service["failures"]) == ("Evicted", 0)

        async def told() -> bool:
            return ((await status()).get("queue") or {}).get("reason") == "NoAllowedNode"

        await eventually(told, seconds=30, what="the job to be told that no node takes it")
    finally:
        await kube.merge_patch(NODES, REAL_NODE, {"spec": {"unschedulable": None}})
    job = await reaches(kube, namespace, "trains", "Running", seconds=60)
    assert job["status"]["service"]["run"] == 2

    async def begun() -> str:
        return logs(devcluster, namespace, "trains-2-0")

    words = await eventually(begun, seconds=30, what="the next run's first words")
    assert f"resumes at step {service['last']['step']} of" in words
    assert service["last"]["step"] > 0
