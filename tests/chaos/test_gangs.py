"""Gangs that got stuck half-way: each is bound whole or taken back whole, and none waits for ever."""

import time
from typing import Any

import pytest

from chaos.observer.book import Book
from chaos.observer.uptime import Uptime
from chaos.observer.watchman import Watchman
from chaos.played.player import Player
from chaos.stage import EXTENDERS, Stage
from chaos.workload import GPU_TYPES, plain_template
from support.extender.world import TOLERATIONS
from support.operator.stage import Stage as Hand
from support.waiting import eventually
from synergy_api.timestamps import format_time
from synergy_kube import KubeClient
from synergy_kube.resources import PODS, TRAINING_JOBS
from synergy_operator.views.annotations import ANNOTATION_UNGATED_AT

pytestmark = pytest.mark.integration

STEPS = 30
CPU, GIB = 12_000, 100
HALF_BOUND_SECONDS = 20
"""How long the gangs seem to have stood so already: the rest of the 30 s is waited for."""


async def submit(kube: KubeClient, namespace: str, player: Player, name: str) -> None:
    """A gang of two workers with the four GPUs of a node each."""
    player.knows(name, STEPS, library=True)
    spec = {
        "gpus": 8,
        "gpusPerWorker": 4,
        "steps": STEPS,
        "gpuTypes": list(GPU_TYPES),
        "profile": {"mode": "Skip"},
        "template": plain_template(),
    }
    await kube.create(TRAINING_JOBS, {"metadata": {"name": name}, "spec": spec}, namespace)


async def half_bound(hand: Hand, name: str, nodes: tuple[str, str], rank: int) -> str:
    """Run 1 of the gang on these nodes, of which only the worker of this rank is bound: that pod's name."""
    await hand.phase("Queued", name=name, seconds=120)
    until = format_time(time.time() + 15)  # no plan lets it be much longer
    await hand.grant(*((node, 4, CPU, GIB) for node in nodes), name=name, gpuType=GPU_TYPES[0], leaseUntil=until)

    async def free() -> list[dict[str, Any]] | None:
        pods = [pod for pod in await hand.pods(1) if pod["metadata"]["name"].startswith(f"{name}-1-")]
        return pods if len(pods) == 2 and not any(pod["spec"].get("schedulingGates") for pod in pods) else None

    pods = await eventually(free, seconds=120, what=f"the gates of {name} to fall", every=0.05)
    await hand.bind_pod(pods[rank])
    return str(pods[rank]["metadata"]["name"])


async def aged(kube: KubeClient, namespace: str, pod: str) -> None:
    """The pod, as if it had been bound that long ago."""
    at = format_time(time.time() - HALF_BOUND_SECONDS)
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}
    await kube.strategic_patch(PODS, pod, {"status": {"conditions": [scheduled]}}, namespace, subresource="status")
    await kube.merge_patch(PODS, pod, {"metadata": {"annotations": {ANNOTATION_UNGATED_AT: at}}}, namespace)


def foreign(node: str) -> dict[str, Any]:
    """A pod that somebody else has put on the node, with all its GPUs."""
    amounts = {"nvidia.com/gpu": "4", "cpu": "1", "memory": "1Gi"}
    container = {"name": "other", "image": "example/other:1", "resources": {"requests": amounts, "limits": amounts}}
    return {
        "metadata": {"name": "foreign"},
        "spec": {"nodeName": node, "tolerations": TOLERATIONS, "containers": [container]},
    }


async def absent(scene: Stage, *names: str) -> None:
    for name in names:
        await scene.programs[name].kill()


@pytest.mark.timeout(600)
async def test_half_bound_gangs_are_taken_back_whole_and_all_finish(whole: Stage) -> None:
    """Two gangs that each hold a node which the other needs, as after two leaders at once, and one that a foreign pod
    was faster than."""
    book, kube = Book(), whole.kube
    async with (
        whole.act("gangs") as scene,
        Player(kube, scene.namespace, book, whole.folder / "tokens-gangs", seed=1) as player,
    ):
        uptime = Uptime(lambda: True)
        async with Watchman(kube, scene.namespace, book, uptime) as watchman, uptime.counting():
            await absent(scene, "scheduler", *EXTENDERS)
            hand = Hand(kube, scene.namespace)
            for name in ("one", "two", "three"):
                await submit(kube, scene.namespace, player, name)
            bound = [
                await half_bound(hand, "one", ("fake-v100-000", "fake-v100-001"), 0),
                await half_bound(hand, "two", ("fake-v100-000", "fake-v100-001"), 1),
                await half_bound(hand, "three", ("fake-v100-002", "fake-v100-003"), 0),
            ]
            await kube.create(PODS, foreign("fake-v100-003"), scene.namespace)
            for pod in bound:
                await aged(kube, scene.namespace, pod)
            for name in (*EXTENDERS, "scheduler"):
                await scene.programs[name].start()

            async def finished() -> bool:
                return len(watchman.phases) == 3 and set(watchman.phases.values()) == {"Succeeded"}

            await eventually(finished, seconds=200, what="all three gangs to finish")
            assert book.broken == []
            runs = {job["metadata"]["name"]: job["status"]["service"]["run"] for job in watchman.jobs}
            assert runs["three"] > 1, "its first place was taken by the foreign pod"
            assert max(runs["one"], runs["two"]) > 1, "only one of them could have had the two nodes"
            other = await kube.get(PODS, "foreign", scene.namespace)
            assert other["status"]["phase"] == "Running"
            assert "deletionTimestamp" not in other["metadata"]
