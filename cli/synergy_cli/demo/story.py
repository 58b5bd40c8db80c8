"""The demo's story: jobs arrive, are profiled, share two GPUs in rounds, and finish."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from synergy_api.names import API_VERSION
from synergy_api.quantity import cpu_millis as milli
from synergy_api.quantity import format_cpu
from synergy_cli.demo.observation import Observation
from synergy_kube import Change, KubeClient, NotFound, Reflector, Resource
from synergy_kube.resources import (
    GPU_POOLS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    SCHEDULING_POLICIES,
    SERVICES,
    THROUGHPUT_PROFILES,
    TRAINING_JOBS,
)

EXAMPLES_IMAGE = "localhost/kube-synergy-examples:dev"
NAMESPACE = "kube-synergy-demo"
SENSITIVE = "cpu-hungry"
PAUSED = "paused"
IMPOSSIBLE = "impossible"
BROKEN = "broken"
SAMPLES = 4
"""Throughput reports wanted from the CPU-hungry job at its proportional share before Synergy-Tune takes over."""

AT_ONCE = 2
"""Jobs that train at a time when the cluster's GPUs are all in use."""

CPU_MILLIS = 1600
"""What the GPU node of a devcluster must offer to jobs and to the components beside them."""
SETTLE_SECONDS = 15.0
"""How long the leader may take to bring a job's progress up to what its last run left."""

_MANAGER = "kube-synergy-demo"
_RESOURCES: Mapping[str, Resource] = {
    resource.kind: resource
    for resource in (GPU_POOLS, NAMESPACES, PERSISTENT_VOLUME_CLAIMS, SCHEDULING_POLICIES, SERVICES, TRAINING_JOBS)
}
Document = dict[str, Any]
"""One manifest."""
Tell = Callable[[str, str], None]
"""Called with a job's name (empty for the whole cluster) and what happened."""
Explain = Callable[[str], Awaitable[None]]
"""Called once, with the name of a job that waits for GPUs."""


class DemoError(Exception):
    """The story did not come to its end."""


@dataclass(slots=True)
class Story:
    """What the demo saw, by job.

    `proportional_per_gpu` is the CPU (milli-CPU) of one GPU's share, read from the first grant while the mechanism
    `proportional` is in force.
    """

    observations: dict[str, Observation] = field(default_factory=dict)
    proportional_per_gpu: int | None = None

    def finished(self) -> bool:
        """Whether every job that can run has succeeded or failed."""
        return bool(self.observations) and all(
            _done(seen) for name, seen in self.observations.items() if name != IMPOSSIBLE
        )

    def waiting(self) -> str | None:
        """A job that waits while two others train that stay: it will not have its turn in a moment."""
        running = [name for name, seen in self.observations.items() if seen.phases[-1:] == ["Running"]]
        if len(running) < AT_ONCE or BROKEN in running:
            return None
        for name, seen in self.observations.items():
            if name != IMPOSSIBLE and seen.phases and seen.phases[-1] == "Queued" and seen.last["status"].get("queue"):
                return name
        return None

    def settled(self) -> bool:
        """Whether the progress of every job that succeeded has caught up with its end, which is written first."""
        return all(
            (seen.last["status"].get("progress") or {}).get("steps") == seen.last["spec"]["steps"]
            for seen in self.observations.values()
            if seen.phases and seen.phases[-1] == "Succeeded"
        )

    def proportional_cpu_millis(self, name: str) -> int | None:
        """The GPU-proportional CPU share of a job."""
        if self.proportional_per_gpu is None:
            return None
        return self.proportional_per_gpu * int(self.observations[name].last["spec"]["gpus"])

    def samples_at_proportional(self) -> int:
        """Throughput reports of the CPU-hungry job at its proportional share."""
        share = self.proportional_cpu_millis(SENSITIVE)
        return 0 if share is None else len(self.observations[SENSITIVE].speeds.get(share, []))

    def learn_proportional_share(self) -> None:
        """Read the share from the first training grant seen."""
        for seen in self.observations.values():
            if self.proportional_per_gpu is None and seen.largest_cpu_millis:
                self.proportional_per_gpu = seen.largest_cpu_millis // int(seen.last["spec"]["gpus"])


def documents(folder: Path) -> list[Document]:
    """The demo's manifests, in the order of their file names. Raises DemoError if there are none."""
    found = [
        document
        for file in sorted(folder.glob("*.yaml"))
        for document in yaml.safe_load_all(file.read_text())
        if document
    ]
    if not found:
        raise DemoError(
            f"no manifests in {folder}: run the demo from the source tree or name its folder with --manifests"
        )
    return found


async def run(
    kube: KubeClient,
    wanted: list[Document],
    *,
    seconds: float,
    tell: Tell,
    explain: Explain,
    cpu_millis: int = CPU_MILLIS,
) -> Story:
    """Apply the manifests, change the mechanism and wake the paused job on the way, follow all to the end.

    The GPU nodes offer `cpu_millis` of their CPU, however many cores the machine has: the story is of CPU that is
    scarce. Raises DemoError after `seconds`.
    """
    await _fresh_namespace(kube)
    await _forget_profiles(kube)
    story = Story({doc["metadata"]["name"]: Observation(doc["metadata"]["name"]) for doc in wanted if _is_job(doc)})
    changed = asyncio.Event()

    def see(change: Change) -> None:
        if change.new is None or change.key[1] not in story.observations:
            return
        for line in story.observations[change.key[1]].see(change.new):
            tell(change.key[1], line)
        changed.set()

    jobs = Reflector(kube, TRAINING_JOBS, namespace=NAMESPACE, on_change=see)
    following = asyncio.create_task(jobs.run())
    try:
        settings = [document for document in wanted if not _is_job(document)]
        nodes = (await kube.list(NODES))["items"]
        await _set_up(kube, [offering(document, nodes, cpu_millis) for document in settings])
        for document in wanted:
            if _is_job(document):
                await _apply(kube, document)
        await asyncio.wait_for(_direct(kube, story, changed, tell, explain), seconds)
    except TimeoutError:
        unfinished = ", ".join(
            name for name, seen in story.observations.items() if not _done(seen) and name != IMPOSSIBLE
        )
        raise DemoError(f"not finished after {seconds:.0f} s: {unfinished}") from None
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    return story


async def _direct(kube: KubeClient, story: Story, changed: asyncio.Event, tell: Tell, explain: Explain) -> None:
    tuned = woken = explained = False
    while not story.finished():
        await changed.wait()
        changed.clear()
        story.learn_proportional_share()
        if not tuned and story.samples_at_proportional() >= SAMPLES:
            tuned = True
            tell("", "mechanism: proportional is replaced by tune; from the next round CPU goes where it helps")
            policy = {"apiVersion": API_VERSION, "spec": {"mechanism": "tune"}}
            await kube.merge_patch(SCHEDULING_POLICIES, "default", policy)
        waiting = story.waiting()
        if not explained and waiting is not None:
            explained = True
            await explain(waiting)
        if not woken and any(_done(seen) for seen in story.observations.values()):
            woken = True
            tell(PAUSED, "is taken out of suspension")
            await kube.merge_patch(TRAINING_JOBS, PAUSED, {"spec": {"suspend": False}}, NAMESPACE)
    try:
        async with asyncio.timeout(SETTLE_SECONDS):
            while not story.settled():
                changed.clear()
                await changed.wait()
    except TimeoutError:
        tell("", "the progress of a job that succeeded does not say all its steps")


async def _fresh_namespace(kube: KubeClient) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            await kube.delete(NAMESPACES, NAMESPACE)
        except NotFound:
            return
        if time.monotonic() > deadline:
            raise DemoError(f"namespace {NAMESPACE} of an earlier demo does not go away: see what its pods wait for")
        await asyncio.sleep(0.5)


async def _forget_profiles(kube: KubeClient) -> None:
    """With the profiles of an earlier demo this one would skip the profiling that it shows."""
    for profile in (await kube.list(THROUGHPUT_PROFILES))["items"]:
        if profile["spec"]["image"] == EXAMPLES_IMAGE:
            await kube.delete(THROUGHPUT_PROFILES, profile["metadata"]["name"])


async def _set_up(kube: KubeClient, wanted: list[Document]) -> None:
    """Apply what the jobs need, and wait until the pools are in force: the jobs name their GPU types."""
    for document in wanted:
        await _apply(kube, document)
    pools = [document["metadata"]["name"] for document in wanted if document["kind"] == GPU_POOLS.kind]
    deadline = time.monotonic() + 60
    while not all([await _in_force(kube, name) for name in pools]):
        if time.monotonic() > deadline:
            raise DemoError("the GPUPools do not come into force: see kubectl describe gpupools")
        await asyncio.sleep(0.2)


def offering(document: Document, nodes: Iterable[Mapping[str, Any]], cpu_millis: int) -> Document:
    """A GPUPool that holds back all but `cpu_millis` of its smallest node; any other manifest as it is."""
    if document["kind"] != GPU_POOLS.kind:
        return document
    selector = document["spec"].get("nodeSelector") or {}
    mine = [node for node in nodes if selector.items() <= (node["metadata"].get("labels") or {}).items()]
    has = min((milli(node["status"]["allocatable"]["cpu"]) for node in mine), default=0)
    reserved = {**(document["spec"].get("systemReserved") or {}), "cpu": format_cpu(max(0, has - cpu_millis))}
    return {**document, "spec": {**document["spec"], "systemReserved": reserved}}


async def _in_force(kube: KubeClient, pool: str) -> bool:
    status = (await kube.get(GPU_POOLS, pool)).get("status") or {}
    return any(item["type"] == "Valid" and item["status"] == "True" for item in status.get("conditions") or [])


async def _apply(kube: KubeClient, document: dict[str, Any]) -> None:
    resource = _RESOURCES[document["kind"]]
    namespace = NAMESPACE if resource.namespaced else None
    await kube.apply(resource, document["metadata"]["name"], document, namespace, manager=_MANAGER)


def _is_job(document: Mapping[str, Any]) -> bool:
    return bool(document["kind"] == TRAINING_JOBS.kind)


def _done(seen: Observation) -> bool:
    return bool(seen.phases) and seen.phases[-1] in ("Succeeded", "Failed")
