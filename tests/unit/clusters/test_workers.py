"""A worker cluster that the set lacks for a moment is away for that moment, not for good."""

import asyncio
from pathlib import Path
from typing import cast

from support.waiting import eventually
from synergy_clusters.views import Key
from synergy_clusters.worker_clusters.cluster_set import ClusterSet
from synergy_clusters.worker_clusters.worker import SILENT_SECONDS, Worker
from synergy_clusters.worker_clusters.workers import Workers
from synergy_kube import KubeClient

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: u, user: {{token: t}}}}]
"""


async def test_a_cluster_is_missing_since_the_start_or_since_its_kubeconfig_went(tmp_path: Path) -> None:
    (tmp_path / "east").write_text(KUBECONFIG.format(port=1))
    workers = Workers(ClusterSet(tmp_path), "hub", lambda name, key: None)
    assert workers.get("east") is None
    assert workers.missing_s("east") < 60
    task = asyncio.create_task(workers.run())
    try:
        await eventually(lambda: _there(workers), seconds=20, what="a worker")
        worker = workers.get("east")
        assert worker is not None
        assert not worker.reachable
        (tmp_path / "east").write_text(KUBECONFIG.format(port=2))
        await eventually(lambda: _another(workers, worker), seconds=20, what="another worker")
        (tmp_path / "east").unlink()
        await eventually(lambda: _gone(workers), seconds=20, what="no worker")
        assert workers.missing_s("east") < 10
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_a_cluster_whose_kubeconfig_cannot_be_used_is_known_by_name(tmp_path: Path) -> None:
    (tmp_path / "east").write_text(KUBECONFIG.format(port=1))
    (tmp_path / "west").write_text("kind: Config")
    workers = Workers(ClusterSet(tmp_path), "hub", lambda name, key: None)
    task = asyncio.create_task(workers.run())
    try:
        await eventually(lambda: _there(workers), seconds=20, what="a worker")
        assert (workers.get("west"), workers.unconnected) == (None, ["west"])
    finally:
        task.cancel()
        await asyncio.wait({task})


class Answers:
    """A worker cluster's API server that answers each time."""

    async def page(self, *_: object, **__: object) -> None:
        return None


async def test_a_cluster_that_was_silent_only_between_two_looks_is_told_to_be_back() -> None:
    told: list[Key | None] = []
    worker = Worker("east", cast(KubeClient, Answers()), "hub", told.append)
    worker._copies.synced.set()
    await worker._ask_once()
    assert (worker.reachable, told) == (False, []), "it has not the hub's mark yet"
    worker.claim()
    assert (worker.reachable, told) == (True, [None])
    await worker._ask_once()
    assert told == [None], "nothing new"
    worker._answered -= SILENT_SECONDS
    assert not worker.reachable, "whoever looks now says that it is away"
    await worker._ask_once()
    assert (worker.reachable, told) == (True, [None, None])
    worker.claim("no right")
    assert (worker.reachable, worker.problem, told) == (False, "no right", [None, None, None])


async def _there(workers: Workers) -> bool:
    return workers.get("east") is not None


async def _another(workers: Workers, before: object) -> bool:
    return workers.get("east") not in (None, before)


async def _gone(workers: Workers) -> bool:
    return workers.get("east") is None
