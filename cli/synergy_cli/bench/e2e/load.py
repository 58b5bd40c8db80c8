"""TrainingJobs on fake nodes, many at a time, and what is seen of them."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import aiohttp
import click

from synergy_cli.bench.e2e.polling import polled
from synergy_kube import Change, KubeClient, Reflector
from synergy_kube.errors import Conflict, NotFound
from synergy_kube.resources import CONFIG_MAPS, NAMESPACES, PODS, TRAINING_JOBS

GPUS_PER_NODE = 8
GPU_TYPE = "Tesla-V100-SXM2-16GB"
_GIB = 1 << 30
_LOOK_SECONDS = 0.01
_AT_ONCE = 32
_TRIES = 5

Json = dict[str, Any]


def training_job(name: str) -> Json:
    """A job with one GPU and a known profile, whose pod runs on a fake node until it is deleted."""
    container = {"name": "train", "image": "example/train:1", "command": ["train"]}
    matrix = {
        "gpuType": GPU_TYPE,
        "cpuMillis": [1000, 3000, 6000],
        "memoryBytes": [8 * _GIB],
        "stepsPerSecond": [[1.0], [2.0], [2.2]],
    }
    return {
        "metadata": {"name": name},
        "spec": {
            "gpus": 1,
            "steps": 1_000_000,
            "gpuTypes": [GPU_TYPE],
            "profile": {"mode": "Provided", "matrices": [matrix]},
            "preemption": "Signal",
            "template": {
                "spec": {
                    "nodeSelector": {"type": "kwok"},
                    "terminationGracePeriodSeconds": 0,
                    "containers": [container],
                }
            },
        },
    }


def bare_pod(name: str, *, gpus: int = 1) -> Json:
    """A pod of the default scheduler on a fake node. Without GPUs it asks for nothing."""
    limits = {"nvidia.com/gpu": str(gpus), "cpu": "1", "memory": "1Gi"} if gpus else {}
    container = {"name": "train", "image": "example/train:1", "resources": {"limits": limits}}
    spec = {"restartPolicy": "Never", "nodeSelector": {"type": "kwok"}, "containers": [container]}
    return {"metadata": {"name": name}, "spec": spec}


class Seen:
    """The jobs and pods of one namespace as watches show them; `moments` is when each pod was first seen bound."""

    def __init__(self, kube: KubeClient, namespace: str) -> None:
        self._changed = asyncio.Event()
        self.namespace = namespace
        self.moments: dict[str, float] = {}
        self.jobs = Reflector(kube, TRAINING_JOBS, namespace=namespace, trim=_trim_job, on_change=self._tell)
        self.pods = Reflector(kube, PODS, namespace=namespace, trim=_trim_pod, on_change=self._pod)

    async def until(self, what: str, holds: Callable[[], bool], seconds: float) -> float:
        """Wait until `holds()`; the moment (time.perf_counter) at which it did. Raises ClickException with `what`
        if that takes longer than `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
                    await asyncio.sleep(_LOOK_SECONDS)  # a look goes through all jobs: not at each of their changes
        except TimeoutError:
            phases = [phase_of(job) for job in self.jobs]
            counts = {phase: phases.count(phase) for phase in sorted(set(phases))}
            raise click.ClickException(f"waited {seconds:.0f} s in vain for {what}; jobs by phase: {counts}") from None
        return time.perf_counter()

    def phases(self) -> list[str]:
        """The phase of every job."""
        return [phase_of(job) for job in self.jobs]

    def bound(self) -> int:
        """How many pods are bound."""
        return sum(1 for pod in self.pods if pod["node"])

    def _pod(self, change: Change) -> None:
        if change.new is not None and change.new["node"]:
            self.moments.setdefault(change.new["uid"], time.perf_counter())
        self._changed.set()

    def _tell(self, _: Change) -> None:
        self._changed.set()


@asynccontextmanager
async def seen_namespace(kube: KubeClient, name: str) -> AsyncIterator[Seen]:
    """A fresh namespace that is watched. In the end it is deleted; what is in it goes by and by."""
    await kube.create(NAMESPACES, {"metadata": {"name": name}})
    await polled(lambda: _usable(kube, name), f"namespace {name} to be usable", 60)
    seen = Seen(kube, name)
    tasks = [asyncio.create_task(seen.jobs.run()), asyncio.create_task(seen.pods.run())]
    try:
        await seen.jobs.synced.wait()
        await seen.pods.synced.wait()
        yield seen
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await kube.delete(NAMESPACES, name)


async def apply_jobs(kube: KubeClient, namespace: str, names: Iterable[str]) -> None:
    """Create a job for each name, some at a time."""
    await some_at_a_time(partial(kube.create, TRAINING_JOBS, training_job(name), namespace) for name in names)


async def delete_jobs(kube: KubeClient, seen: Seen, names: Iterable[str]) -> None:
    """Delete these jobs and wait until they and their pods are gone."""
    gone = list(names)
    await some_at_a_time(partial(kube.delete, TRAINING_JOBS, name, seen.namespace) for name in gone)
    keys = {(seen.namespace, name) for name in gone}

    def away() -> bool:
        return not keys & seen.jobs.items.keys() and not any((seen.namespace, p["job"]) in keys for p in seen.pods)

    await seen.until("deleted jobs to be gone", away, 60 + len(gone) * 0.1)


async def delete_pods(kube: KubeClient, seen: Seen, names: Iterable[str]) -> None:
    """Delete these pods and wait until they are gone."""
    gone = list(names)
    await some_at_a_time(partial(kube.delete, PODS, name, seen.namespace, grace_seconds=0) for name in gone)
    keys = {(seen.namespace, name) for name in gone}
    await seen.until("deleted pods to be gone", lambda: not keys & seen.pods.items.keys(), 60 + len(gone) * 0.1)


def phase_of(job: Mapping[str, Any]) -> str:
    """The job's phase; empty before the operator has seen it."""
    return str((job.get("status") or {}).get("phase") or "")


async def some_at_a_time(calls: Iterable[Callable[[], Awaitable[object]]]) -> None:
    """Make the calls, each again if a busy API server does not answer in time."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(call: Callable[[], Awaitable[object]]) -> None:
        async with slots:
            await _answered(call)

    async with asyncio.TaskGroup() as group:
        for call in calls:
            group.create_task(one(call))


async def _answered(call: Callable[[], Awaitable[object]]) -> None:
    """Ask again if a busy API server does not answer in time: it may have done what it was asked."""
    for tries_left in reversed(range(_TRIES)):
        try:
            await call()
        except (Conflict, NotFound):
            if tries_left == _TRIES - 1:
                raise
        except (TimeoutError, aiohttp.ClientError):
            if not tries_left:
                raise
            continue
        return


async def _usable(kube: KubeClient, namespace: str) -> bool:
    try:
        return bool(await kube.get(CONFIG_MAPS, "kube-root-ca.crt", namespace))
    except NotFound:
        return False


def _kept(item: Json) -> Json:
    return {key: item["metadata"][key] for key in ("name", "namespace", "resourceVersion")}


def _trim_job(item: Json) -> Json:
    status = item.get("status") or {}
    return {
        "metadata": _kept(item),
        "status": {
            key: status[key] for key in ("phase", "observedGeneration", "allocation", "service") if key in status
        },
    }


def _trim_pod(item: Json) -> Json:
    metadata, spec = item["metadata"], item["spec"]
    return {
        "metadata": _kept(item),
        "uid": metadata["uid"],
        "phase": (item.get("status") or {}).get("phase", ""),
        "job": (metadata.get("labels") or {}).get("kube-synergy.dev/job", ""),
        "node": spec.get("nodeName", ""),
        "gated": bool(spec.get("schedulingGates")),
        "planned": (metadata.get("annotations") or {}).get("kube-synergy.dev/planned-node", ""),
    }
