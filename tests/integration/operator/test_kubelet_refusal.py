"""A kubelet that refuses a worker, because another pod has its GPUs: a lost attempt that nobody is blamed for."""

from typing import Any

import pytest

from support.operator.stage import Stage, condition
from support.waiting import eventually
from synergy_api.cluster.pods import is_terminal, pod_requests
from synergy_api.timestamps import parse_time
from synergy_devcluster.gpu_plugin.gpu_types import gpu_type
from synergy_devcluster.node.node import PAUSE_IMAGE
from synergy_devcluster.real_nodes import REAL_NODE
from synergy_kube.resources import PODS

pytestmark = pytest.mark.integration

A100 = gpu_type("A100").product
GPUS = 2


def thief() -> dict[str, Any]:
    """Takes all GPUs of the real node without asking any scheduler."""
    container = {"name": "pause", "image": PAUSE_IMAGE, "resources": {"limits": {"nvidia.com/gpu": str(GPUS)}}}
    spec = {"nodeName": REAL_NODE, "terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"metadata": {"name": "thief"}, "spec": spec}


async def test_a_worker_that_the_kubelet_refuses_is_queued_again_and_no_failure_of_its_job(stage: Stage) -> None:
    async def free() -> bool:
        pods = (await stage.kube.list(PODS, field_selector=f"spec.nodeName={REAL_NODE}"))["items"]
        holding = [pod for pod in pods if not is_terminal(pod) and pod_requests(pod).gpus]
        return not holding

    await eventually(free, seconds=60, what="the pods of earlier tests to be gone")
    await stage.kube.create(PODS, thief(), stage.namespace)

    async def taken() -> bool:
        return bool((await stage.kube.get(PODS, "thief", stage.namespace))["status"]["phase"] == "Running")

    await eventually(taken, seconds=60, what="the other pod to have the GPUs")
    pod = {"spec": {"containers": [{"name": "train", "image": PAUSE_IMAGE, "command": ["/pause"]}]}}
    await stage.submit(gpus=1, gpuTypes=[A100], template=pod, backoffLimit=0)
    await stage.phase("Queued")
    await stage.grant((REAL_NODE, 1, 100, 1), gpuType=A100)
    await stage.bind(1)
    refused = await stage.until("the refused run to end", lambda s: s.get("service", {}).get("endedRun") == 1)
    status = refused["status"]
    assert status["phase"] == "Queued", "with no failure allowed the job would have failed"
    assert (status["service"]["last"]["outcome"], status["service"]["failures"]) == ("Evicted", 0)
    assert status["service"]["attainedGPUSeconds"] == 0
    assert parse_time(status["service"]["retryAt"]) > parse_time(refused["metadata"]["creationTimestamp"])
    message = condition(status, "Running")["message"]
    assert condition(status, "Running")["reason"] == "WorkerRefused"
    assert "nvidia.com/gpu" in message, message
    await stage.told("WorkerRefused")
    await stage.kube.delete(PODS, "thief", stage.namespace, grace_seconds=0)
    await stage.gone("thief")
    await stage.grant((REAL_NODE, 1, 100, 1), run=2, gpuType=A100)
    await stage.bind(1, run=2)

    async def admitted() -> bool:
        worker = await stage.kube.get(PODS, "job-2-0", stage.namespace)
        return bool(worker["status"].get("conditions")) and worker["status"]["phase"] != "Failed"

    await eventually(admitted, seconds=20, what="the kubelet to admit the next run's worker")
    assert (await stage.job())["status"]["service"]["failures"] == 0
