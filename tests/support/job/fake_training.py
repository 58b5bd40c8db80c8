"""Training on fake nodes: pods that end when their job has made its steps at the speeds that plans told.

kwok's pods run until they are told otherwise. Here a job makes `allocation.stepsPerSecond` steps in each second in
which all workers of a run are seen to run; it keeps them over preemptions, and after the last its workers end with 0.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chaos.played.kubelet import Kubelet
from synergy_api import names
from synergy_api.timestamps import parse_time
from synergy_extender.cluster.revocation import Revocation
from synergy_kube import Change, KubeClient, Reflector
from synergy_kube.resources import PODS, TRAINING_JOBS

Object = Mapping[str, Any]


@dataclass(slots=True)
class Span:
    """A run that had GPUs, Unix time."""

    gpu_type: str
    due: float
    """From when it could have trained (`Training.due`)."""
    until: float
    """When its workers were last seen to run."""


@dataclass(slots=True)
class Training:
    """A job, as it is seen from outside."""

    name: str
    steps_left: float
    finished: float | None = None
    """When its status first said Succeeded."""
    run: int = 0
    """The run that trains, or that did last."""
    since: float | None = None
    """Since when all workers of it run; None: they do not."""
    speed: float = 0.0
    ending: asyncio.TimerHandle | None = None
    ended: int = 0
    """The run whose workers were told that they are done. Where that came too late another run follows, with no step
    left to make."""
    due: dict[int, float] = field(default_factory=dict)
    """From when each run could have trained if nothing had to be told, deleted, created and bound: from the end of the
    lease before, where the same plan moved the job; else from when it was first seen granted, or its round's begin
    where it had to wait for that."""
    moves_at: float | None = None
    """When the lease ends of a run that the plan gave another place."""
    waits: list[float] = field(default_factory=list)
    """Of each run: from there until all of its workers ran."""
    places: list[tuple[str, float]] = field(default_factory=list)
    """GPU type of each run, and the steps per second that the plan told."""
    spans: list[Span] = field(default_factory=list)
    """When each run had its GPUs."""


class FakeTraining:
    """All jobs of a namespace. An asynchronous context, in which they train."""

    def __init__(self, kube: KubeClient, namespace: str, *, round_s: float) -> None:
        self.jobs: dict[str, Training] = {}
        self._namespace = namespace
        self._round_s = round_s
        self._kubelet = Kubelet(kube, time.time)
        self._jobs = Reflector(kube, TRAINING_JOBS, namespace=namespace, on_change=self._job_changed)
        self._pods = Reflector(kube, PODS, namespace=namespace, on_change=self._pod_changed)
        self._pods_of: dict[str, dict[str, Object]] = defaultdict(dict)
        """By job: its pods by name."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "FakeTraining":
        for reflector in (self._jobs, self._pods):
            self._start(reflector.run())
            await reflector.synced.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        for job in self.jobs.values():
            if job.ending is not None:
                job.ending.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def expect(self, name: str, steps: float) -> None:
        """A job of so many steps is about to be submitted."""
        self.jobs[name] = Training(name, steps)

    @property
    def done(self) -> bool:
        """Whether all jobs that were expected have succeeded."""
        return all(job.finished is not None for job in self.jobs.values())

    def hurry(self, name: str) -> None:
        """The job has no step left to make: it ends as soon as it trains."""
        job = self.jobs[name]
        if job.finished is None and job.since is not None:
            self._end(job)
        job.steps_left = 0.0

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _job_changed(self, change: Change) -> None:
        job = self.jobs.get(change.key[1])
        if job is None or change.new is None:
            return
        status = change.new.get("status") or {}
        allocation = status.get("allocation") or {}
        if allocation.get("state") == "Revoked" and Revocation.MOVES in (allocation.get("reason") or ""):
            job.moves_at = parse_time(allocation["leaseUntil"])
        elif allocation.get("state") == "Granted":
            self._note_due(job, allocation)
        if status.get("phase") == "Succeeded" and job.finished is None:
            job.finished = time.time()
        self._look(job)

    def _note_due(self, job: Training, allocation: Object) -> None:
        run, now, begins = allocation["run"], time.time(), allocation["round"] * self._round_s
        if run not in job.due:
            moved = job.moves_at is not None and begins <= job.moves_at
            job.due[run] = (job.moves_at or 0.0) if moved else max(now, begins)
            job.moves_at = None
        if allocation["admitted"]:  # perhaps ahead of its round
            job.due[run] = min(job.due[run], now)

    def _pod_changed(self, change: Change) -> None:
        pod = change.new or change.old or {}
        job = self.jobs.get(pod["metadata"].get("labels", {}).get(names.LABEL_JOB, ""))
        if job is None:
            return
        if change.new is None:
            self._pods_of[job.name].pop(change.key[1], None)
        else:
            self._pods_of[job.name][change.key[1]] = change.new
            self._start(self._kubelet.insist(change.new))
        self._look(job)

    def _look(self, job: Training) -> None:
        """See whether the job trains now, and how fast."""
        item = self._jobs.get(self._namespace, job.name) or {}
        allocation = (item.get("status") or {}).get("allocation") or {}
        run, workers = int(allocation.get("run", 0)), allocation.get("workers") or []
        running = sum(_runs(pod) for pod in self._workers(job.name, run))
        trains = 0 < len(workers) == running
        if job.since is not None and (not trains or run != job.run):
            self._stop(job)
        if trains and job.since is None and run != job.ended:
            self._go(job, allocation)

    def _stop(self, job: Training) -> None:
        now = time.time()
        job.steps_left -= (now - (job.since or now)) * job.speed
        job.since = None
        job.spans[-1].until = now
        if job.ending is not None:
            job.ending.cancel()

    def _go(self, job: Training, allocation: Object) -> None:
        now = time.time()
        if allocation["run"] != job.run:
            job.places.append((allocation["gpuType"], allocation["stepsPerSecond"]))
            due = job.due[allocation["run"]]
            job.waits.append(now - due)
            job.spans.append(Span(allocation["gpuType"], due, now))
        job.run, job.since, job.speed = allocation["run"], now, allocation["stepsPerSecond"]
        job.ending = asyncio.get_running_loop().call_later(max(0.0, job.steps_left / job.speed), self._end, job)

    def _end(self, job: Training) -> None:
        self._stop(job)
        job.steps_left, job.ended = 0.0, job.run
        for pod in self._workers(job.name, job.run):
            self._start(self._kubelet.end(pod, 0))

    def _workers(self, job: str, run: int) -> list[Object]:
        """Pods of a run."""
        pods = self._pods_of[job].values()
        return [pod for pod in pods if pod["metadata"].get("labels", {}).get(names.LABEL_RUN) == str(run)]


def _runs(pod: Object) -> bool:
    going = "deletionTimestamp" in pod["metadata"]
    return not going and bool((pod.get("status") or {}).get("phase") == "Running")
