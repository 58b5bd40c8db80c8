"""The whole control plane is away for minutes while jobs train: etcd, API server, both kube-schedulers, the operator
and both replicas of the extender. Who trains goes on, in the same run; who was told to leave leaves at its lease's
end."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from chaos.faults.api_server import UNREACHABLE, answers
from chaos.observer.book import Book, Run
from chaos.observer.uptime import Uptime
from chaos.observer.watchman import Watchman
from chaos.played.gang import RATE, Training
from chaos.played.player import Player
from chaos.stage import Stage
from chaos.workload import GPU_TYPES, plain_template
from support.waiting import eventually
from synergy_devcluster.programs.processes import reap
from synergy_kube import KubeClient
from synergy_kube.resources import SCHEDULING_POLICIES, TRAINING_JOBS

_LOG = logging.getLogger("chaos")
_HALF = 32
"""GPUs of each job, all of one type: the first has its own, the second must yield to the third."""
_TYPES = {"first": GPU_TYPES[0], "second": GPU_TYPES[1], "third": GPU_TYPES[1]}
_COMPONENTS = ("kube-apiserver", "etcd", "kube-scheduler")


@dataclass(frozen=True)
class Witness:
    """What the outage was for the jobs. `before` and `after` are steps of those that trained on, `told` is the run that
    was to leave, `left_after` how long after its lease's end it left (seconds), `saved` the step that it saved then and
    `resumed` the step from which its next run went on, `runs` the runs that each job has had."""

    before: Mapping[str, int]
    after: Mapping[str, int]
    told: Run
    left_after: float
    saved: int
    resumed: int
    runs: Mapping[str, int]
    broken: list[str]


async def outage(stage: Stage, seconds: float) -> Witness:
    """Take the control plane away for so long, and look at what the jobs make of it."""
    book, kube = Book(), stage.kube
    async with (
        stage.act("outage") as scene,
        Player(kube, scene.namespace, book, stage.folder / "tokens-outage", seed=1) as player,
        Watchman(kube, scene.namespace, book, Uptime(lambda: True)) as watchman,
    ):
        for name, trains_for in (("first", seconds + 600), ("second", 600), ("third", 3)):
            player.knows(name, int(trains_for * RATE), library=True)
        await _submit(kube, scene, player, "first")
        await _submit(kube, scene, player, "second")
        await _until(lambda: _training(player) == {"first", "second"}, 120, "two jobs to train")
        await _submit(kube, scene, player, "third")
        told = await eventually(_found(player.told_to_leave), seconds=120, what="a job to be told to leave", every=0.05)
        async with _away(scene):
            left = await _left(player, told)
            trained = _steps(player, without=told[0])
            await asyncio.sleep(seconds)
            after = _steps(player, without=told[0])
            saved = player.trainings[told[0]].checkpoint
        planned = await eventually(partial(_planned_round, kube), seconds=120, what="the policy to be read")
        await eventually(partial(_planned_since, kube, planned), seconds=120, what="a round to be planned")
        await _until(lambda: watchman.phases["third"] == "Succeeded", 120, "the third job to succeed")
        await _until(lambda: told[0] in _training(player), 120, "the job that left to go on")
        resumed = player.trainings[told[0]].resumed
        runs = {job["metadata"]["name"]: int(job["status"]["service"]["run"]) for job in watchman.jobs}
        return Witness(trained, after, told, left, saved, resumed, runs, book.broken)


@asynccontextmanager
async def _away(scene: Stage) -> Any:
    """While nothing of the control plane runs."""
    for program in scene.programs.values():
        await program.kill()
    for name in _COMPONENTS:
        await asyncio.to_thread(scene.cluster.component(name).kill)
    reap()
    _LOG.info("the control plane is away")
    try:
        yield
    finally:
        for name in reversed(_COMPONENTS):
            await asyncio.to_thread(scene.cluster.component(name).start)
        await eventually(lambda: answers(scene.kube), seconds=180, what="the API server to answer")
        for program in scene.programs.values():
            await program.start()
        _LOG.info("the control plane is back")


async def _submit(kube: KubeClient, scene: Stage, player: Player, name: str) -> None:
    spec = {
        "gpus": _HALF,
        "gpusPerWorker": 4,
        "steps": player.trainings[name].steps,
        "gpuTypes": [_TYPES[name]],
        "profile": {"mode": "Skip"},
        "template": plain_template(),
    }
    await kube.create(TRAINING_JOBS, {"metadata": {"name": name}, "spec": spec}, scene.namespace)


async def _left(player: Player, told: Run) -> float:
    """How long after the end of its lease the run has left."""
    training: Training = player.trainings[told[0]]
    await _until(lambda: told[1] not in training.live, 30, "the job that was told to leave")
    return time.time() - player.lease_end(told)


async def _planned_round(kube: KubeClient) -> int | None:
    """The newest round that the policy's status names; None while the API server is not back."""
    try:
        status = (await kube.get(SCHEDULING_POLICIES, "default")).get("status") or {}
    except UNREACHABLE:
        return None
    return int((status.get("inForce") or {}).get("round", 0))


async def _planned_since(kube: KubeClient, index: int) -> bool:
    now = await _planned_round(kube)
    return now is not None and now > index


def _training(player: Player) -> set[str]:
    return {name for name, training in player.trainings.items() if training.live}


def _steps(player: Player, *, without: str) -> dict[str, int]:
    return {name: training.reached for name, training in player.trainings.items() if training.live and name != without}


def _found(look: Callable[[], Run | None]) -> Callable[[], Awaitable[Run | None]]:
    async def probe() -> Run | None:
        return look()

    return probe


async def _until(holds: Callable[[], bool], seconds: float, what: str) -> None:
    async def probe() -> bool:
        return holds()

    await eventually(probe, seconds=seconds, what=what)
