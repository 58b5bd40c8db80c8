"""The dispatcher of a hub with two worker clusters. Objects and watches are in memory, and forecasts are given; all
else is the controller's own."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.api_server.followed_objects import FollowedObjects
from support.extender.cluster import NOW, allocation, job_object, share
from support.waiting import eventually
from synergy_api.names import ANNOTATION_MAY_START, MANAGED_BY_CLUSTERS
from synergy_clusters.actions import Actions
from synergy_clusters.choice import Prospect
from synergy_clusters.claims.fence import Fence
from synergy_clusters.dispatcher import Dispatcher
from synergy_clusters.forecast.prospects import Placed
from synergy_clusters.offers import Offers, Wish
from synergy_clusters.worker_clusters.cluster_set import ClusterSet
from synergy_clusters.worker_clusters.workers import Workers
from synergy_kube import KubeClient
from synergy_kube.resources import TRAINING_JOBS

Json = dict[str, Any]
NAMESPACE = "team"
_QUICKLY = {
    "synergy_clusters.dispatcher": ("_LOOK_SECONDS", "_CONFLICT_SECONDS", "_ERROR_SECONDS"),
    "synergy_clusters.actions": ("_GONE_SECONDS",),
    "synergy_clusters.claims.fence": ("_LOOK_SECONDS", "_PROBLEM_SECONDS"),
    "synergy_clusters.offers": ("_GATHER_SECONDS",),
    "synergy_clusters.worker_clusters.worker": ("_ASK_SECONDS",),
}
"""Waits of the controller that these tests need not wait for."""
AWAY_S = 60.0


class Stage:
    """A hub, the clusters `east` and `west`, and a controller that chooses `best`."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.hub = FollowedObjects()
        self.clusters = {"east": FollowedObjects(), "west": FollowedObjects()}
        self.best: str | None = "east"
        self.unreached: dict[str, str] = {}
        """If set, a round of forecasts reaches no job, for these problems."""
        self.rounds: list[list[Wish]] = []
        self.hold: asyncio.Event | None = None
        """If set, a round of forecasts waits for it."""
        self.heard = True
        """Whether the dispatcher hears of changes in worker clusters."""
        self.now = NOW
        self._tasks: list[asyncio.Task[None]] = []
        self._folder = folder
        for name in self.clusters:
            (folder / name).write_text(name)
        for module, names in _QUICKLY.items():
            for name in names:
                patch.setattr(f"{module}.{name}", 0.01)
        # an answer is fresh however busy this machine is: `away` says when it is not
        patch.setattr("synergy_clusters.worker_clusters.worker.SILENT_SECONDS", 1e6)
        stage = self

        async def connect(kubeconfig: str | None = None) -> KubeClient:
            return stage.clusters[Path(str(kubeconfig)).name]

        async def forecast(_: Offers, wishes: list[Wish]) -> dict[str, Placed]:
            return await stage._forecast(wishes)

        patch.setattr("synergy_clusters.worker_clusters.workers.KubeClient.connect", connect)
        patch.setattr(Offers, "_round", forecast)
        self.dispatcher, self.workers = self.controller()

    def controller(self) -> tuple[Dispatcher, Workers]:
        """A controller, which does not run yet."""

        def changed(cluster: str, key: tuple[str, str] | None) -> None:
            if self.heard:
                dispatcher.cluster_changed(cluster, key)

        workers = Workers(ClusterSet(self._folder), "hub", changed)
        fence = Fence(self.hub, "hub", "kube-synergy", lambda: workers.all, lambda: workers.unconnected)
        actions = Actions(self.hub, "hub", fence, lambda: self.now)
        dispatcher = Dispatcher(
            self.hub, actions, workers, fence, away_s=AWAY_S, reconsider_s=600.0, clock=lambda: self.now
        )
        return dispatcher, workers

    async def start(self) -> "Stage":
        """Let the controller run, and wait until both clusters can be reached."""
        self.run()

        async def all_reachable() -> bool:
            return len(self.workers.all) == 2 and all(one.reachable for one in self.workers.all)

        await eventually(all_reachable, seconds=20, what="both clusters", every=0.01)
        return self

    def run(self) -> None:
        """Let the controller run."""
        self._tasks.append(asyncio.create_task(self.dispatcher.run()))

    def also(self, dispatcher: Dispatcher) -> None:
        """Let a second controller run beside it."""
        self._tasks.append(asyncio.create_task(dispatcher.run()))

    async def end(self) -> None:
        """Stop all controllers."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def submit(self, name: str = "j", **spec: Any) -> None:
        """Create a job in the hub."""
        item = job_object(name, spec={"managedBy": MANAGED_BY_CLUSTERS, **spec})
        del item["status"]
        await self.hub.create(TRAINING_JOBS, item, NAMESPACE)

    def job(self, name: str = "j") -> Json:
        """The hub's job; empty if there is none."""
        return self.hub.items.get((NAMESPACE, name), {})

    def copy(self, cluster: str, name: str = "j") -> Json:
        """Its copy there; empty if there is none."""
        return self.clusters[cluster].items.get((NAMESPACE, name), {})

    def told(self, name: str = "j") -> Json:
        """What the hub's status says: cluster, offer, fixed, phase and the reason of `Offered`."""
        status = self.job(name).get("status") or {}
        conditions = {one["type"]: one["reason"] for one in status.get("conditions") or ()}
        place = status.get("cluster") or {}
        return {
            "cluster": place.get("name"), "offer": place.get("offer"), "fixed": bool(place.get("fixed")),
            "phase": status.get("phase"), "offered": conditions.get("Offered"),
        }  # fmt: skip

    def may_start(self, cluster: str, name: str = "j") -> bool:
        """Whether the copy there has been let to start."""
        return ANNOTATION_MAY_START in (self.copy(cluster, name).get("metadata") or {}).get("annotations", {})

    async def says(self, cluster: str, name: str = "j", **status: Any) -> None:
        """The worker cluster's own controllers write a status."""
        await self.clusters[cluster].apply(TRAINING_JOBS, name, {"status": status}, NAMESPACE, manager="there")

    async def grants(self, cluster: str, name: str = "j") -> None:
        """The worker cluster has a place for its copy."""
        await self.says(cluster, name, phase="Queued", allocation=allocation(share("n")))

    def away(self, cluster: str, seconds: float = AWAY_S) -> None:
        """The cluster answers no more, and has not for so long."""
        self.clusters[cluster].down = True
        worker = self.workers.get(cluster)
        assert worker is not None
        worker._ever, worker._answered = False, time.monotonic() - seconds

    def back(self, cluster: str) -> None:
        """It answers again."""
        self.clusters[cluster].down = False

    async def until(self, holds: Callable[[], Any], what: str, seconds: float = 20) -> None:
        """Wait until it holds."""

        async def probe() -> bool:
            return bool(holds())

        try:
            await eventually(probe, seconds=seconds, what=what, every=0.005)
        except AssertionError as error:
            raise AssertionError(f"{error}; {self.told()}") from None

    async def settled(self) -> None:
        """Wait until the controller has looked at everything again and asks no more."""
        before = -1

        async def quiet() -> bool:
            nonlocal before
            last, before = before, sum(len(one.asked) for one in (self.hub, *self.clusters.values()))
            return before == last

        await eventually(quiet, seconds=20, what="an end of all requests", every=0.1)

    async def offered(self, cluster: str, name: str = "j") -> None:
        """Wait until the job has a copy there."""
        await self.until(lambda: self.copy(cluster, name), f"{name} in {cluster}")

    async def _forecast(self, wishes: list[Wish]) -> dict[str, Placed]:
        self.rounds.append(wishes)
        if self.hold is not None:
            await self.hold.wait()
        if self.unreached:
            return {"/".join(wish.key): Placed(None, self.unreached, reached=False) for wish in wishes}
        best = self.best
        found = Placed(None, {"east": "no GPU"}) if best is None else Placed(Prospect(self.now, self.now + 1, best))
        return {"/".join(wish.key): found for wish in wishes}
