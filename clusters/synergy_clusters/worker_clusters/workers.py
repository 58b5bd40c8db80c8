"""The worker clusters of the set: each followed by a task of its own, as long as its kubeconfig is there."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from synergy_clusters.views import Key
from synergy_clusters.worker_clusters.cluster_set import ClusterSet, Kubeconfig
from synergy_clusters.worker_clusters.worker import Worker
from synergy_kube import KubeClient, NoClusterError

_LOG = logging.getLogger(__name__)
_READ_SECONDS: Final = 5.0


class Workers:
    """All worker clusters. `on_change` gets a cluster's name and what its Worker tells."""

    def __init__(self, clusters: ClusterSet, hub: str, on_change: Callable[[str, Key | None], None]) -> None:
        self._set = clusters
        self._hub = hub
        self._on_change = on_change
        self._workers: dict[str, Worker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._files: dict[str, Kubeconfig] = {}
        self._named: frozenset[str] = frozenset()
        self._begun = time.monotonic()
        self._ended: dict[str, float] = {}

    def get(self, name: str) -> Worker | None:
        """The cluster of this name, if it is in the set and its kubeconfig can be used."""
        return self._workers.get(name)

    def missing_s(self, name: str) -> float:
        """For how long the set has not had the cluster: it starts with none, and a new kubeconfig takes a moment."""
        return time.monotonic() - self._ended.get(name, self._begun)

    @property
    def all(self) -> list[Worker]:
        """Every cluster, by name."""
        return [self._workers[name] for name in sorted(self._workers)]

    @property
    def unconnected(self) -> list[str]:
        """Clusters of the set, by name, whose kubeconfig cannot be used."""
        return sorted(self._named - self._workers.keys())

    async def run(self) -> None:
        """Follow the set and its clusters until cancelled."""
        try:
            while True:
                await self._follow_set()
                await asyncio.sleep(_READ_SECONDS)
        finally:
            for name in list(self._tasks):
                await self._end(name)

    async def _follow_set(self) -> None:
        try:
            files = await asyncio.to_thread(self._set.read)
        except OSError as error:
            _LOG.error("the kubeconfigs of the worker clusters cannot be read: %s", error)
            return
        self._named = frozenset(files)
        for name in [one for one, file in self._files.items() if files.get(one) != file or self._tasks[one].done()]:
            await self._end(name)
        for name in files.keys() - self._files.keys():
            await self._begin(name, files[name])

    async def _begin(self, name: str, file: Kubeconfig) -> None:
        try:
            client = await KubeClient.connect(str(file.path))
        except NoClusterError as error:
            _LOG.error("cluster %s: %s", name, error)
            return
        worker = Worker(name, client, self._hub, lambda key: self._on_change(name, key))
        self._workers[name], self._files[name] = worker, file
        self._tasks[name] = asyncio.create_task(worker.run(), name=f"cluster {name}")

    async def _end(self, name: str) -> None:
        task, worker = self._tasks.pop(name), self._workers.pop(name)
        del self._files[name]
        self._ended[name] = time.monotonic()
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("cluster %s is followed anew", name, exc_info=error)
        await worker.client.close()
        self._on_change(name, None)
