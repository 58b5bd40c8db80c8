"""`kube-synergy bench start`: from `kubectl apply` of a job with a known profile to Running, on the live cluster."""

import asyncio
import json
import time
import uuid
from collections.abc import Mapping
from statistics import median
from typing import Any

import aiohttp
import click

from synergy_kube import ApiError, KubeClient, NoClusterError, Reflector, Resource
from synergy_kube.resources import NAMESPACES, PODS, TRAINING_JOBS

_GIB = 1 << 30
_WAIT_SECONDS = 60.0


@click.command()
@click.option("--gpu-type", required=True, help="GPU type of this cluster, such as A100.")
@click.option("--image", default="localhost/kube-synergy-examples:dev", show_default=True, help="Image with python3.")
@click.option(
    "--repeats",
    default=5,
    show_default=True,
    type=click.IntRange(1),
    help="Number of starts. A figure is their median.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def start(gpu_type: str, image: str, repeats: int, as_json: bool) -> None:
    """Measure how long a job takes to run when GPUs are free, compared with a bare pod of the default scheduler."""
    try:
        report = asyncio.run(_measure(gpu_type, image, repeats))
    except (NoClusterError, ApiError, aiohttp.ClientConnectionError) as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        click.echo(json.dumps(report))
    else:
        click.echo(
            f"a TrainingJob runs {report['job_s']:.2f} s after it is created (slowest {report['job_slowest_s']:.2f}), "
            f"a bare pod {report['pod_s']:.2f} s: {report['ratio']:.2f} times"
        )


async def _measure(gpu_type: str, image: str, repeats: int) -> dict[str, Any]:
    namespace = f"bench-{uuid.uuid4().hex[:8]}"
    jobs, pods = [], []
    async with await KubeClient.connect() as kube:
        await kube.create(NAMESPACES, {"metadata": {"name": namespace}})
        try:
            for index in range(repeats):
                pods.append(await _seconds(kube, PODS, _pod(f"pod-{index}", image), namespace))
                jobs.append(await _seconds(kube, TRAINING_JOBS, _job(f"job-{index}", gpu_type, image), namespace))
        finally:
            await kube.delete(NAMESPACES, namespace)
    return {
        "benchmark": "start",
        "repeats": repeats,
        "job_s": median(jobs),
        "job_slowest_s": max(jobs),
        "pod_s": median(pods),
        "ratio": median(jobs) / median(pods),
    }


async def _seconds(kube: KubeClient, resource: Resource, body: Mapping[str, Any], namespace: str) -> float:
    """Create the object, wait until its phase is Running, delete it and wait until it is gone."""
    changed = asyncio.Event()
    followed = Reflector(kube, resource, namespace=namespace, on_change=lambda _: changed.set())
    pods = Reflector(kube, PODS, namespace=namespace, on_change=lambda _: changed.set())
    tasks = [asyncio.create_task(followed.run()), asyncio.create_task(pods.run())]
    name = body["metadata"]["name"]
    try:
        async with asyncio.timeout(_WAIT_SECONDS):
            await followed.synced.wait()
            begun = time.perf_counter()
            await kube.create(resource, body, namespace)
            while _phase(followed.get(namespace, name)) != "Running":
                changed.clear()
                await changed.wait()
            seconds = time.perf_counter() - begun
            await kube.delete(resource, name, namespace, grace_seconds=0)
            while followed.items or pods.items:
                changed.clear()
                await changed.wait()
    except TimeoutError:
        raise click.ClickException(
            f"{resource.kind} {name} did not run and go within {_WAIT_SECONDS:.0f} s: "
            f"is a GPU free? status: {(followed.get(namespace, name) or {}).get('status')}"
        ) from None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return seconds


def _phase(item: Mapping[str, Any] | None) -> str | None:
    return ((item or {}).get("status") or {}).get("phase")


def _container(image: str, **more: Any) -> dict[str, Any]:
    command = ["python3", "-c", "import time; time.sleep(600)"]
    return {"name": "train", "image": image, "imagePullPolicy": "IfNotPresent", "command": command, **more}


def _pod(name: str, image: str) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": "1", "cpu": "100m", "memory": "128Mi"}
    spec = {"restartPolicy": "Never", "containers": [_container(image, resources={"limits": limits})]}
    return {"metadata": {"name": name}, "spec": spec}


def _job(name: str, gpu_type: str, image: str) -> dict[str, Any]:
    matrix = {"gpuType": gpu_type, "cpuMillis": [100, 200], "memoryBytes": [_GIB], "stepsPerSecond": [[1.0], [1.5]]}
    return {
        "metadata": {"name": name},
        "spec": {
            "gpus": 1,
            "steps": 1,
            "gpuTypes": [gpu_type],
            "profile": {"mode": "Provided", "matrices": [matrix]},
            "preemption": "Signal",
            "template": {"spec": {"terminationGracePeriodSeconds": 0, "containers": [_container(image)]}},
        },
    }
