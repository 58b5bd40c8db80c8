"""TrainingJobs for tests, and waiting for what becomes of them."""

import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import synergy_devcluster
from support.waiting import eventually
from synergy_kube import KubeClient
from synergy_kube.resources import TRAINING_JOBS

EXAMPLES_IMAGE = "localhost/kube-synergy-examples:dev"
GIB = 1 << 30


def restricted_template(command: Sequence[str], **pod: Any) -> dict[str, Any]:
    """A pod template that restricted pod security admits, running `command` in the examples' image."""
    container = {
        "name": "train",
        "image": EXAMPLES_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": list(command),
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    security = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    return {"spec": {"securityContext": security, "containers": [container], **pod}}


def fake_template(run_seconds: int) -> dict[str, Any]:
    """A pod template for fake nodes, where the pod ends well after `run_seconds`."""
    template = restricted_template(["train"])
    template["metadata"] = {"annotations": {"kwok.kube-synergy.dev/run-seconds": str(run_seconds)}}
    return template


def matrix(gpu_type: str, curve: Mapping[int, float], memory_bytes: int) -> dict[str, Any]:
    """A sensitivity matrix with one memory point: steps per second by milli-CPU."""
    return {
        "gpuType": gpu_type,
        "cpuMillis": sorted(curve),
        "memoryBytes": [memory_bytes],
        "stepsPerSecond": [[curve[cpu]] for cpu in sorted(curve)],
    }


async def submit(kube: KubeClient, namespace: str, name: str, **spec: Any) -> None:
    """Create a TrainingJob."""
    await kube.create(TRAINING_JOBS, {"metadata": {"name": name}, "spec": spec}, namespace)


async def reaches(kube: KubeClient, namespace: str, name: str, *phases: str, seconds: float) -> dict[str, Any]:
    """The job once it is in one of `phases`. Raises AssertionError, with its whole status, when it is not in time."""
    last: dict[str, Any] = {}

    async def there() -> dict[str, Any] | None:
        last.clear()
        last.update(await kube.get(TRAINING_JOBS, name, namespace))
        return last if last.get("status", {}).get("phase") in phases else None

    try:
        return await eventually(there, seconds=seconds, what=f"{name} to be {' or '.join(phases)}")
    except AssertionError as error:
        raise AssertionError(f"{error}; its status: {last.get('status')}") from None


async def appears(kube: KubeClient, namespace: str, name: str, *, seconds: float) -> None:
    """Wait for a TrainingJob that the operator makes."""

    async def there() -> bool:
        return any(job["metadata"]["name"] == name for job in (await kube.list(TRAINING_JOBS, namespace))["items"])

    await eventually(there, seconds=seconds, what=f"TrainingJob {name}")


def empties(value: Any, path: str) -> list[str]:
    """The paths of everything that is null or empty."""
    if value is None or value in ("", [], {}):
        return [path]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, one in inner for found in empties(one, f"{path}.{key}")]


def logs(cluster: synergy_devcluster.Cluster, namespace: str, pod: str) -> str:
    """What the pod's first container printed."""
    command = [str(cluster.program("kubectl")), "--kubeconfig", str(cluster.kubeconfig), "-n", namespace, "logs", pod]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
