"""A worker cluster that the set lacks for a moment is away for that moment, not for good."""

import asyncio
from pathlib import Path

from support.waiting import eventually
from synergy_clusters.cluster_set import ClusterSet
from synergy_clusters.workers import Workers

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


async def _there(workers: Workers) -> bool:
    return workers.get("east") is not None


async def _another(workers: Workers, before: object) -> bool:
    return workers.get("east") not in (None, before)


async def _gone(workers: Workers) -> bool:
    return workers.get("east") is None
