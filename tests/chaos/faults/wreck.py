"""Carries the faults out, and mends what it broke."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from chaos.faults.api_server import STORE_LINK, insist
from chaos.faults.draw import Fault
from chaos.faults.ill_will import IllWill
from chaos.faults.link import Break
from chaos.observer.book import API_SERVER, Book, run_of
from chaos.observer.watchman import Watchman
from chaos.played.player import Player
from chaos.stage import EXTENDERS, Stage, elsewhere
from chaos.workload import STOP_ANNOTATION, STOP_SECONDS
from synergy_devcluster.node.kwok import FAIL_ANNOTATION
from synergy_devcluster.programs.processes import reap
from synergy_kube.resources import NODES, PODS, TRAINING_JOBS

_LOG = logging.getLogger("chaos")
_AT_ONCE = 5
_API = {"api-server": "kube-apiserver", "etcd": "etcd", "default-scheduler": "kube-scheduler"}
_NEVER_SECONDS = 86_400
_TARGET_SECONDS = 60.0
"""How long a fault waits for something that it can happen to."""


class _NoTargetError(Exception):
    """There was nothing that the fault could have happened to."""


class Wreck:
    """`done` counts the faults by kind, `broken` what is broken now by name; `missed` found nothing to happen to."""

    def __init__(self, stage: Stage, player: Player, watchman: Watchman, book: Book, broken: Counter[str]) -> None:
        self.done: Counter[str] = Counter()
        self.missed: list[Fault] = []
        self.broken = broken
        self._stage = stage
        self._player = player
        self._watchman = watchman
        self._book = book
        self._locks: dict[str, asyncio.Lock] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._ill_will = IllWill(stage, book, elsewhere(stage.namespace), insist)

    async def run(self, faults: Sequence[Fault]) -> None:
        """All faults, each at its time or as soon as its target is whole again."""
        start = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for fault in faults:
                await asyncio.sleep(max(0.0, start + fault.at - time.monotonic()))
                await self._slots.acquire()
                group.create_task(self._one(fault))

    async def _one(self, fault: Fault) -> None:
        try:
            what, _, target = fault.kind.partition("-")
            await {
                "kill": self._kill,
                "pause": self._pause,
                "cut": self._cut,
                "fail": self._fail_node,
                "delete": self._delete,
                "crash": self._crash,
                "slow": self._slow_checkpoint,
                "storm": self._ill_will.storm,
                "deny": self._ill_will.deny,
                "fill": self._ill_will.fill_quota,
                "submit": self._ill_will.submit_oversize,
                "drop": self._drop_job,
                "step": self._step_clock,
            }[what](fault, target)
            self.done[fault.kind] += 1
        except _NoTargetError:
            _LOG.info("%s: nothing to do it to", fault.kind)
            self.missed.append(fault)
        finally:
            self._slots.release()

    @contextmanager
    def _breaking(self, name: str, detail: str) -> Iterator[None]:
        _LOG.info("%s %s", name, detail)
        self.broken[name] += 1
        try:
            yield
        finally:
            self.broken[name] -= 1
            _LOG.info("%s is over", name)

    @contextmanager
    def _component_breaking(self, target: str, detail: str) -> Iterator[None]:
        with self._breaking(target, detail):
            what = target if target == "default-scheduler" else API_SERVER
            self._book.fails(what)
            try:
                yield
            finally:
                self._book.is_back(what)

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    async def _replica(self, target: str) -> str:
        """The program that a target's name means now."""
        if not target.startswith("extender-"):
            return target
        leader = await self._stage.leader()
        return leader if target == "extender-leader" else next(name for name in EXTENDERS if name != leader)

    async def _kill(self, fault: Fault, target: str) -> None:
        if target in _API:
            await self._kill_component(fault, target)
            return
        name = await self._replica(target)
        async with self._lock(name):
            with self._breaking(name, f"killed for {fault.seconds:.1f} s"):
                program = self._stage.programs[name]
                await program.kill()
                await asyncio.sleep(fault.seconds)
                await program.start()

    async def _kill_component(self, fault: Fault, target: str) -> None:
        async with self._lock("control-plane"):
            with self._component_breaking(target, f"killed for {fault.seconds:.1f} s"):
                component = self._stage.cluster.component(_API[target])
                await asyncio.to_thread(component.kill)
                await asyncio.sleep(fault.seconds)
                await asyncio.to_thread(component.start)
                reap()
                await self._api_ready()

    async def _pause(self, fault: Fault, target: str) -> None:
        if target in _API:
            async with self._lock("control-plane"):
                component = self._stage.cluster.component(_API[target])
                with self._component_breaking(target, f"paused for {fault.seconds:.1f} s"):
                    component.pause()
                    try:
                        await asyncio.sleep(fault.seconds)
                    finally:
                        component.resume()
                    await self._api_ready()
            return
        name = await self._replica(target)
        async with self._lock(name):
            with self._breaking(name, f"paused for {fault.seconds:.1f} s"):
                program = self._stage.programs[name]
                program.pause()
                try:
                    await asyncio.sleep(fault.seconds)
                finally:
                    program.resume()

    async def _cut(self, fault: Fault, target: str) -> None:
        if target == "node":
            await self._cut_node(fault)
            return
        name = target
        if target.startswith("extender-"):
            name = await self._replica(target.removesuffix("-api")) + "-api"
        how = list(Break)[int(fault.way * len(Break))]
        detail = f"{how} for {fault.seconds:.1f} s"
        if name == STORE_LINK:
            async with self._lock("control-plane"):
                with self._component_breaking(name, detail):
                    await self._break(name, how, fault.seconds)
                    await self._api_ready()
            return
        async with self._lock(name):
            with self._breaking(name, detail):
                await self._break(name, how, fault.seconds)

    async def _break(self, link: str, how: Break, seconds: float) -> None:
        self._stage.links[link].fail(how)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._stage.links[link].heal()

    async def _fail_node(self, fault: Fault, _: str) -> None:
        node = await self._target(
            lambda: sorted({pod["spec"]["nodeName"] for pod in self._player.running()}), fault.pick
        )
        async with self._lock(node):
            with self._breaking(node, f"fails for {fault.seconds:.1f} s"):
                self._player.node_fails(node)
                await self._annotate(node, "true")
                await asyncio.sleep(fault.seconds)
                await self._annotate(node, None)
                self._player.node_is_back(node)

    async def _cut_node(self, fault: Fault) -> None:
        """Its pods cannot go meanwhile but by force, and no kubelet tells of them: kwok is told to let them stay."""
        node = await self._target(self._player.nodes_to_cut, fault.pick)
        async with self._lock(node):
            with self._breaking(node, f"is cut off for {fault.seconds:.1f} s"):
                pods = self._player.node_is_cut_off(node)
                await self._annotate(node, "true")
                await self._stop_seconds(pods, _NEVER_SECONDS)
                await asyncio.sleep(fault.seconds)
                await self._stop_seconds(pods, STOP_SECONDS)
                await self._annotate(node, None)
                self._player.node_rejoins(node, pods)

    async def _stop_seconds(self, pods: Sequence[Mapping[str, Any]], seconds: int) -> None:
        for pod in pods:
            body = {"metadata": {"uid": pod["metadata"]["uid"], "annotations": {STOP_ANNOTATION: str(seconds)}}}
            await insist(partial(
                self._stage.kube.merge_patch, PODS, pod["metadata"]["name"], body, self._stage.namespace
            ))  # fmt: skip

    async def _slow_checkpoint(self, fault: Fault, _: str) -> None:
        def slowed() -> list[str]:
            job = self._player.slow_checkpoints(fault.pick, fault.seconds)
            return [job] if job else []

        _LOG.info("checkpoints of %s take %.0f s", await self._target(slowed, 0.0), fault.seconds)

    async def _delete(self, fault: Fault, target: str) -> None:
        if target == "allocation":
            await self._delete_allocation(fault)
            return
        pod = await self._target(self._player.pods, fault.pick)
        name, run = pod["metadata"]["name"], run_of(pod)
        _LOG.info("%s %s", fault.kind, name)
        if target == "pod-at-once":
            self._book.hurt(run, "a pod was deleted at once")
        else:
            self._book.ended(run, "a pod was deleted")
        await insist(
            lambda: self._stage.kube.delete(
                PODS, name, self._stage.namespace, grace_seconds=0 if target == "pod-at-once" else None
            )
        )

    async def _delete_allocation(self, fault: Fault) -> None:
        def placed() -> list[Mapping[str, Any]]:
            jobs = [
                job for job in self._watchman.jobs if ((job.get("status") or {}).get("allocation") or {}).get("workers")
            ]
            return sorted(jobs, key=lambda job: str(job["metadata"]["name"]))

        job = await self._target(placed, fault.pick)
        name = job["metadata"]["name"]
        _LOG.info("%s %s", fault.kind, name)
        for run in (job["status"]["allocation"]["run"], job["status"]["allocation"]["run"] + 1):
            self._book.ended((name, run), "its allocation was deleted")
        body: Mapping[str, Any] = {"status": {"allocation": None}}
        await insist(
            lambda: self._stage.kube.merge_patch(TRAINING_JOBS, name, body, self._stage.namespace, subresource="status")
        )

    async def _crash(self, fault: Fault, _: str) -> None:
        pod = await self._target(self._player.running, fault.pick)
        _LOG.info("crash of %s", pod["metadata"]["name"])
        self._player.crashes(pod)

    async def _drop_job(self, fault: Fault, _: str) -> None:
        async with self._lock("operator-api"):
            with self._breaking("operator-api", "hears nothing while a job is deleted"):
                await self._ill_will.drop_job(fault)

    async def _step_clock(self, fault: Fault, target: str) -> None:
        name = await self._replica(target.removesuffix("-clock"))
        async with self._lock(f"{name}-clock"):
            await self._ill_will.step_clock(fault, name)

    async def _annotate(self, node: str, value: str | None) -> None:
        body = {"metadata": {"annotations": {FAIL_ANNOTATION: value}}}
        await insist(lambda: self._stage.kube.merge_patch(NODES, node, body))

    async def _target(self, among: Callable[[], Sequence[Any]], pick: float) -> Any:
        """One of them, as soon as there are any."""
        deadline = time.monotonic() + _TARGET_SECONDS
        while not (items := among()):
            if time.monotonic() > deadline:
                raise _NoTargetError
            await asyncio.sleep(0.2)
        return items[int(pick * len(items))]

    async def _api_ready(self) -> None:
        """Each kind of object has connections of its own to etcd, and those that are dead are noticed one by one."""
        await insist(lambda: self._stage.kube.get(NODES, "ksdev-real"))
        await insist(lambda: self._stage.kube.get(PODS, "nobody", self._stage.namespace))
        await insist(lambda: self._stage.kube.get(TRAINING_JOBS, "nobody", self._stage.namespace))
