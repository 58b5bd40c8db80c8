"""One run of the harness: jobs, faults, observer, report."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chaos.faults.api_server import STORE_LINK, created
from chaos.faults.draw import schedule
from chaos.faults.wreck import Wreck
from chaos.observer.book import Book
from chaos.observer.uptime import Uptime
from chaos.observer.watchman import Watchman
from chaos.played.player import Player
from chaos.report import Report
from chaos.stage import Stage
from chaos.workload import MOST_STEPS, Planned, neighbours, workload
from synergy_kube import KubeClient
from synergy_kube.resources import PODS, TRAINING_JOBS, Resource

_LOG = logging.getLogger("chaos")
_TIMES_AGAIN = 3
_STILL_SECONDS = 630.0
"""How long nothing may advance before the jobs that are left are given up: longer than the longest wait after a
refused run."""


async def chaos(stage: Stage, *, seed: int, faults: int, jobs: int, most_steps: int = MOST_STEPS) -> Report:
    """Run it, with jobs of at most so many steps. Everything it makes in the cluster is gone afterwards."""
    started = time.monotonic()
    planned_faults = schedule(seed, faults)
    until = 0.7 * planned_faults[-1].at if planned_faults else 0.0
    planned_jobs, others = workload(seed, jobs, until, most_steps), neighbours(seed, jobs // 4, until)
    book, kube = Book(), stage.kube
    async with (
        stage.act(f"chaos-{seed}") as scene,
        Player(kube, scene.namespace, book, stage.folder / f"tokens-{seed}", seed) as player,
    ):
        broken: Counter[str] = Counter()
        uptime = Uptime(lambda: bool(scene.operator.ready()) and not any(broken[name] for name in _OPERATOR_NEEDS))
        async with Watchman(kube, scene.namespace, book, uptime) as watchman, uptime.counting():
            wreck = Wreck(scene, player, watchman, book, broken)
            for job in planned_jobs:
                player.knows(job.name, job.spec["steps"], library=job.library)
            async with asyncio.TaskGroup() as group:
                group.create_task(
                    _submit(kube, TRAINING_JOBS, scene.namespace, [(j.at, _manifest(j)) for j in planned_jobs])
                )
                group.create_task(
                    _submit(kube, PODS, scene.namespace, [(other.at, other.manifest) for other in others])
                )
                group.create_task(wreck.run(planned_faults))
            for attempt in range(_TIMES_AGAIN if wreck.missed else 0):
                await _again(wreck, player, scene, workload(seed + 1 + attempt, 5, 0.0, most_steps), attempt)
            _LOG.info("all faults are done; waiting for the jobs")
            await _finished(watchman, player)
            await _last_look(watchman, player, book)
        seconds = time.monotonic() - started
        return _Ended(scene, wreck, watchman, player, book).report(seed, seconds)


async def _again(wreck: Wreck, player: Player, scene: Stage, jobs: Sequence[Planned], attempt: int) -> None:
    """Faults that came too late, when all jobs had ended, happen to further jobs."""
    missed, wreck.missed = [replace(fault, at=0.0) for fault in wreck.missed], []
    further = [replace(job, name=f"further-{attempt}-{index}") for index, job in enumerate(jobs if missed else ())]
    for job in further:
        player.knows(job.name, job.spec["steps"], library=job.library)
    async with asyncio.TaskGroup() as group:
        group.create_task(_submit(scene.kube, TRAINING_JOBS, scene.namespace, [(0.0, _manifest(j)) for j in further]))
        group.create_task(wreck.run(missed))


_OPERATOR_NEEDS = ("operator", "operator-api", "api-server", "etcd", STORE_LINK)


def _manifest(job: Planned) -> dict[str, Any]:
    return {"metadata": {"name": job.name}, "spec": job.spec}


async def _submit(
    kube: KubeClient, resource: Resource, namespace: str, manifests: list[tuple[float, Mapping[str, Any]]]
) -> None:
    """Each at its time, or as soon as the API server takes it."""
    start = time.monotonic()
    for at, manifest in manifests:
        await asyncio.sleep(max(0.0, start + at - time.monotonic()))
        await created(kube, resource, manifest, namespace)


async def _finished(watchman: Watchman, player: Player) -> None:
    """Until all jobs have ended, or none advances any more."""
    stood, since = (-1, -1), time.monotonic()
    while time.monotonic() - since < _STILL_SECONDS:
        ended = sum(phase in ("Succeeded", "Failed") for phase in watchman.phases.values())
        if ended == len(player.trainings):
            return
        stands = (ended, sum(training.checkpoint for training in player.trainings.values()))
        if stands != stood:
            stood, since = stands, time.monotonic()
        await asyncio.sleep(0.5)


async def _last_look(watchman: Watchman, player: Player, book: Book) -> None:
    """What must be so once all is quiet."""
    deadline = time.monotonic() + 90
    problems: list[str] = []
    while time.monotonic() < deadline:
        problems = [text for job in watchman.jobs for text in _left_over(job, player)]
        if not problems:
            return
        await asyncio.sleep(1)
    for text in problems:
        book.breaks(f"at the end: {text}")


def _left_over(job: object, player: Player) -> list[str]:
    assert isinstance(job, dict)
    name, status = job["metadata"]["name"], job.get("status") or {}
    training, problems = player.trainings[name], []
    if status.get("phase") != "Succeeded":
        conditions = {c["type"]: f"{c['reason']}: {c['message']}" for c in status.get("conditions") or []}
        return [f"{name} is {status.get('phase')} at step {training.checkpoint} of {training.steps}: {conditions}"]
    if training.checkpoint != training.steps:
        problems.append(f"{name} succeeded at step {training.checkpoint} of {training.steps}")
    if training.library and (status.get("progress") or {}).get("steps") != training.steps:
        problems.append(f"{name} says {status.get('progress')} of {training.steps} steps")
    if (status.get("allocation") or {}).get("workers"):
        problems.append(f"{name} is finished and still holds {status['allocation']}")
    service = status.get("service") or {}
    if service.get("runningSince") or service.get("endedRun") != service.get("run"):
        problems.append(f"{name} is finished and its books are open: {service}")
    return problems


@dataclass(frozen=True)
class _Ended:
    """All there is to tell of."""

    scene: Stage
    wreck: Wreck
    watchman: Watchman
    player: Player
    book: Book

    def report(self, seed: int, seconds: float) -> Report:
        """The report."""
        trainings = self.player.trainings
        done = [name for name, phase in self.watchman.phases.items() if phase == "Succeeded"]
        runs = [((job.get("status") or {}).get("service") or {}).get("run", 0) for job in self.watchman.jobs]
        notes: dict[str, object] = {
            "events_seen": self.watchman.events,
            "runs": sum(runs),
            "most_runs_of_a_job": max(runs, default=0),
            "pods_refused_by_nodes": self.player.admission.refusals,
            "writes_refused": dict(sorted(self.scene.refusals.refused.items())),
            "ended_by_themselves": {name: p.ended for name, p in self.scene.programs.items() if p.ended},
        }
        undone = sum(trainings[name].steps - trainings[name].checkpoint for name in done)
        return Report(
            seed=seed,
            faults=self.wreck.done,
            jobs=len(trainings),
            finished=len(done),
            steps_lost=sum(training.lost for training in trainings.values()) + undone,
            steps_doubled=sum(training.doubled for training in trainings.values()),
            promises_broken=self.book.broken,
            seconds=seconds,
            notes=notes,
        )
