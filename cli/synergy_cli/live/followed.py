"""A cluster whose collections are listed once and then followed, for what is asked of it again and again."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from kube_synergy.live.cluster import HIDDEN, Cluster, Object
from synergy_kube import ApiError, Reflector, Resource
from synergy_kube.resources import TRAINING_JOBS
from synergy_view.seen import SeenJob, read_all

# of a watch that fails the next list tells: without a handler, Python writes it into the answer on the terminal
logging.getLogger(Reflector.__module__).addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class FollowedCluster(Cluster):
    """Answers as `Cluster` does, from copies: the first question about a collection lists it. From then on the API
    server sends its changes only."""

    failed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a watch has failed: the copies may be old."""
    _copies: dict[tuple[str, str | None], Reflector] = field(default_factory=dict)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def jobs(self, namespace: str | None) -> list[SeenJob]:
        """See `Cluster`. A job is read again only if it has changed."""
        found: list[SeenJob] = []
        for item in await self._items(TRAINING_JOBS, namespace, _seen):
            jobs, unreadable = item["seen"]
            found += jobs
            for one in unreadable:
                self.tell_unreadable(one)
        return found

    async def items(self, resource: Resource, namespace: str | None = None, **selectors: str) -> list[Object] | None:
        """See `Cluster`. Only whole collections are followed."""
        if selectors:
            return await Cluster.items(self, resource, namespace, **selectors)
        try:
            return await self._items(resource, namespace, _trimmed)
        except ApiError as error:
            if error.code in HIDDEN:
                return None
            raise

    async def _items(self, resource: Resource, namespace: str | None, trim: Callable[[Object], Object]) -> list[Object]:
        """The objects in the order of a list."""
        key = resource.plural, namespace
        copy = self._copies.get(key)
        if copy is None:
            copy = Reflector(self.client, resource, namespace=namespace, trim=trim, on_restart=self._restarted)
            await copy.read_once()
            self._copies[key] = copy
            task = asyncio.create_task(copy.run())
            task.add_done_callback(lambda _: self.failed.set())
            self._tasks.append(task)
        return [copy.items[key] for key in sorted(copy.items)]

    def _restarted(self, _resource: str, cause: str) -> None:
        if cause == "error":
            self.failed.set()

    async def end(self) -> None:
        """End the watches."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def followed(cluster: Cluster) -> AsyncIterator[FollowedCluster]:
    """The cluster, followed as long as the block lasts."""
    copies = FollowedCluster(cluster.client, cluster.namespace, cluster.tell)
    try:
        yield copies
    finally:
        await copies.end()


def _seen(item: Object) -> Object:
    """The job as it is read, in place of the object."""
    return {"metadata": _kept(item["metadata"]), "seen": read_all([item])}


def _trimmed(item: Object) -> Object:
    """Without what no answer needs: who wrote each field, and the images of a node."""
    metadata = {name: value for name, value in item["metadata"].items() if name != "managedFields"}
    status: dict[str, Any] = {name: value for name, value in (item.get("status") or {}).items() if name != "images"}
    return {**item, "metadata": metadata, "status": status}


def _kept(metadata: Object) -> Object:
    return {name: metadata[name] for name in ("namespace", "name", "uid", "resourceVersion") if name in metadata}
