"""A client of the API server for tests of what follows collections: the test says what its watches tell."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from itertools import count
from typing import Any

import msgspec

from synergy_kube import Gone, KubeClient
from synergy_kube.answers import Page
from synergy_kube.paging import PAGE_ITEMS
from synergy_kube.resources import Resource

Object = Mapping[str, Any]
_Event = tuple[str, Object] | None
_TAKEN_SECONDS = 30.0
"""A follower that has failed never takes what it is told."""


class ToldClient(KubeClient):
    """Lists and watches only. Each change has been taken by its follower when the method that tells it returns."""

    def __init__(self) -> None:
        self._listed: dict[Resource, list[Object]] = defaultdict(list)
        self._told: dict[Resource, asyncio.Queue[_Event]] = defaultdict(asyncio.Queue)
        self._stale: set[Resource] = set()
        self._versions = count(1)

    def holds(self, resource: Resource, items: Iterable[Object]) -> None:
        """What the next list shows."""
        self._listed[resource] = [self._versioned(item) for item in items]

    async def tell(self, resource: Resource, kind: str, item: Object) -> None:
        """The watch brings one event: `kind` is ADDED, MODIFIED or DELETED."""
        await self._says(resource, (kind, self._versioned(item)))

    async def relist(self, resource: Resource, items: Iterable[Object]) -> None:
        """The watch is too old, as after a restart of the API server: the collection is listed anew."""
        self.holds(resource, items)
        await self._says(resource, None)

    async def page(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        most: int = PAGE_ITEMS,
        after: str = "",
        most_bytes: int = 0,
    ) -> Page:
        """The newest `holds`, in one page."""
        body = {"metadata": {"resourceVersion": str(next(self._versions))}, "items": self._listed[resource]}
        return Page(msgspec.json.encode(body))

    async def watch(
        self,
        resource: Resource,
        resource_version: str,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """Whatever `tell` says, without an end."""
        told = self._told[resource]
        if resource in self._stale:
            self._stale.remove(resource)
            told.task_done()
        while (event := await told.get()) is not None:
            yield event[0], dict(event[1])
            told.task_done()
        self._stale.add(resource)
        raise Gone(410, "Expired", "too old resource version")

    async def _says(self, resource: Resource, event: _Event) -> None:
        self._told[resource].put_nowait(event)
        async with asyncio.timeout(_TAKEN_SECONDS):
            await self._told[resource].join()

    def _versioned(self, item: Object) -> Object:
        return {**item, "metadata": {**item["metadata"], "resourceVersion": str(next(self._versions))}}
