"""Plays the containers of all pods of ours: training gangs and profile measurements."""

import asyncio
import json
import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chaos.observer.book import API_SERVER, Book, Run, run_of
from chaos.played.admission import Admission
from chaos.played.gang import Around, Gang, Training, environment
from chaos.played.kubelet import Kubelet
from support.on_cluster.observer import number, pod_request
from synergy_api import names
from synergy_kube import Change, KubeClient, Reflector
from synergy_kube.resources import PODS

Object = Mapping[str, Any]


class Player:
    """Follows the namespace's pods and lets their containers do what they would do."""

    def __init__(self, kube: KubeClient, namespace: str, book: Book, folder: Path, seed: int) -> None:
        self.trainings: dict[str, Training] = {}
        self._book = book
        self._chance = random.Random(seed)
        self._kubelet = Kubelet(kube, time.time)
        self._around = Around(book, self._kubelet, folder, self._chance)
        self._gangs: dict[Run, Gang] = {}
        self._measured: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.admission = Admission(kube)
        self._pods = Reflector(kube, PODS, namespace=namespace, on_change=self._changed)
        folder.mkdir()

    async def __aenter__(self) -> "Player":
        self._spawn(self.admission.nodes.run())
        await self.admission.nodes.synced.wait()
        self._spawn(self._pods.run())
        await self._pods.synced.wait()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for gang in self._gangs.values():
            await gang.stop()

    def knows(self, job: str, steps: int, *, library: bool) -> None:
        """A job that will come."""
        self.trainings[job] = Training(job, steps, library=library, book=self._book)

    def running(self) -> list[Object]:
        """The worker pods whose containers run, by name."""
        pods = [pod for pod in self._pods if _role(pod) == names.ROLE_WORKER and _phase(pod) == "Running"]
        alive = [pod for pod in pods if not self._kubelet.has_ended(pod) and "deletionTimestamp" not in pod["metadata"]]
        alive = [pod for pod in alive if not self._book.cut_now(pod["spec"]["nodeName"])]
        return sorted(alive, key=lambda pod: str(pod["metadata"]["name"]))

    def nodes_to_cut(self) -> list[str]:
        """The nodes with a worker that would train on if they were cut off, by name."""
        held = [pod for pod in self.running() if self._gang(pod).can_live_cut_off]
        return sorted({str(pod["spec"]["nodeName"]) for pod in held})

    def pods(self) -> list[Object]:
        """All pods of ours, by name."""
        return sorted((pod for pod in self._pods if _role(pod)), key=lambda pod: str(pod["metadata"]["name"]))

    def told_to_leave(self) -> Run | None:
        """A run that trains and was told by its lease to leave."""
        return next((run for run, gang in sorted(self._gangs.items()) if gang.trains and gang.lease_end), None)

    def lease_end(self, run: Run) -> float:
        """When the run was told to leave, in Unix seconds; 0 if it was not."""
        return self._gangs[run].lease_end or 0.0

    def crashes(self, pod: Object) -> None:
        """The pod's container ends with an error."""
        self._book.hurt(run_of(pod), "a worker crashed")
        self._gang(pod).loses("a worker crashed")
        self._spawn(self._kubelet.end(pod, 1))

    def node_fails(self, node: str) -> None:
        """The node is switched off: its containers are gone, and nobody hears of it."""
        self._book.fails(node)
        for pod in self._on(node):
            self._book.hurt(run_of(pod), f"node {node} failed")
            self._gang(pod).loses(f"node {node} failed")

    def node_is_back(self, node: str) -> None:
        """The node has started again; its kubelet finds pods whose containers are no more."""
        self._book.is_back(node)
        for pod in self._on(node):
            self._spawn(self._kubelet.end(pod, 137, reason="ContainerStatusUnknown"))

    def node_is_cut_off(self, node: str) -> list[Object]:
        """Nobody reaches the node or hears of it, and its containers run on; the worker pods there. Gangs that would
        lose peers by that break, and so do those without a fence."""
        self._book.cuts_off(node)
        pods = self._on(node)
        for pod in pods:
            gang = self._gang(pod)
            if not gang.can_live_cut_off:
                self._book.hurt(gang.run, f"node {node} was cut off")
                gang.loses(f"node {node} was cut off")
            gang.reachable.clear()
        return pods

    def node_rejoins(self, node: str, pods: list[Object]) -> None:
        """The node, on which these pods were, is reached again: its kubelet ends what was deleted meanwhile."""
        self._book.is_back(node)
        there = {pod["metadata"]["uid"]: pod for pod in self._pods}
        for pod in pods:
            gang, now = self._gang(pod), there.get(pod["metadata"]["uid"])
            gang.reachable.set()
            if now is None or "deletionTimestamp" in now["metadata"]:
                gang.terminate()
            if now is not None and not gang.trains and not self._kubelet.has_ended(now):
                self._spawn(self._kubelet.end(now, 137, reason="ContainerStatusUnknown"))

    def slow_checkpoints(self, pick: float, seconds: float) -> str | None:
        """The next checkpoints of a job that trains with the library take so long; which job, None without one."""
        jobs = sorted({run[0] for run, gang in self._gangs.items() if gang.trains and self.trainings[run[0]].library})
        if not jobs:
            return None
        job = jobs[int(pick * len(jobs))]
        self.trainings[job].slows(seconds)
        return job

    def _on(self, node: str) -> list[Object]:
        held = [pod for pod in self._pods if pod["spec"].get("nodeName") == node and _role(pod) == names.ROLE_WORKER]
        return [pod for pod in held if _phase(pod) in ("Pending", "Running") and not self._kubelet.has_ended(pod)]

    def _changed(self, change: Change) -> None:
        pod = change.new or change.old
        assert pod is not None
        role = _role(pod)
        self._admit(pod, gone=change.new is None)
        if role == names.ROLE_WORKER:
            self._worker(pod, gone=change.new is None)
        elif role == names.ROLE_PROFILE and change.new is not None and _phase(pod) == "Running":
            self._profile(pod)
        if change.new is not None and self._kubelet.has_ended(pod):
            self._spawn(self._kubelet.insist(pod))

    def _admit(self, pod: Object, *, gone: bool) -> None:
        if gone or _phase(pod) in ("Succeeded", "Failed"):
            self.admission.forget(pod)
        elif reason := self.admission.refusal(pod):
            if _role(pod) == names.ROLE_WORKER:
                self._book.hurt(run_of(pod), "its node refused a worker")
                self._gang(pod).loses("its node refused a worker")
            self._spawn(self._kubelet.refuse(pod, reason))

    def _worker(self, pod: Object, *, gone: bool) -> None:
        gang = self._gang(pod)
        rank = int(pod["metadata"]["labels"][names.LABEL_RANK])
        if not pod["spec"].get("nodeName"):
            return  # none of its containers has run: if it goes, nobody hears a SIGTERM, and another takes its place
        if gone:
            if not self._kubelet.has_ended(pod):
                self._gone(gang, rank)
            return
        gang.pods[rank] = pod
        if "deletionTimestamp" in pod["metadata"]:
            node = pod["spec"]["nodeName"]
            if not self._book.failed_now(node) and not self._book.cut_now(node):
                gang.terminate()
        else:
            if self._book.failed_now(pod["spec"].get("nodeName", "")):
                gang.loses("its node is down")
            gang.begin()

    def _gone(self, gang: Gang, rank: int) -> None:
        """A kubelet lets a pod go once its containers have saved and ended. What went without SIGTERM was killed,
        unless that was between two watches."""
        if not gang.reachable.is_set():
            return  # only its object is gone
        if gang.saving:
            gang.cut_short(rank)
            return
        told = gang.told or self._book.failed_lately(API_SERVER)
        if told and not self._book.why_hurt(gang.run):
            gang.terminate()
        else:
            gang.loses(f"worker {rank} is gone")

    def _gang(self, pod: Object) -> Gang:
        run = run_of(pod)
        if run not in self._gangs:
            size = int(environment(pod)["WORLD_SIZE"])
            training = self.trainings[run[0]]
            self._gangs[run] = Gang(run, size, training, self._around)
        return self._gangs[run]

    def _profile(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if uid not in self._measured and "deletionTimestamp" not in pod["metadata"]:
            self._measured.add(uid)
            self._spawn(self._measure(pod))

    async def _measure(self, pod: Object) -> None:
        """A measurement that a second CPU per GPU still speeds up, and more do not."""
        await asyncio.sleep(self._chance.uniform(0.5, 2.0))
        gpus = max(1.0, pod_request(pod, names.RESOURCE_GPU))
        cpus = number((pod["spec"]["containers"][0]["resources"].get("limits") or {}).get("cpu", "1"))
        result = {
            "outcome": "measured",
            "steps_per_second": round(5.0 * gpus * min(1.0, cpus / (2 * gpus)), 3),
            "relative_error": 0.01,
            "steps": 50,
            "warmup_steps": 5,
            "seconds": 1.0,
            "cpu_used_millis": int(900 * min(cpus, 2 * gpus)),
            "max_rss_bytes": 1 << 26,
        }
        await self._kubelet.end(pod, 0, message=json.dumps(result))

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(self._book.task_ended)


def _role(pod: Object) -> str:
    return str(pod["metadata"].get("labels", {}).get(names.LABEL_ROLE, ""))


def _phase(pod: Object) -> str:
    return str((pod.get("status") or {}).get("phase", ""))
