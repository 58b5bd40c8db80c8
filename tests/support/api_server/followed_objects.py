"""`KeptObjects` of one kind that can also be listed and watched, and that can be away."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec

from support.api_server.kept_objects import KeptObjects, Object
from synergy_kube.answers import Page
from synergy_kube.paging import PAGE_ITEMS
from synergy_kube.resources import Resource


class FollowedObjects(KeptObjects):
    """`down`: nothing is answered, and watches break. `late`: watches bring nothing for now. `asked` has each verb."""

    def __init__(self, *items: Object) -> None:
        self.down = False
        self.late = False
        self.asked: list[str] = []
        self._log: list[tuple[int, str, Object]] = []
        super().__init__(*items)

    async def close(self) -> None:
        """There are no connections."""

    async def delete(self, resource: Resource, name: str, namespace: str | None = None, **more: Any) -> Object:
        """At once; an object with finalizers only gets its time of deletion."""
        item = await self.get(resource, name, namespace)
        if item["metadata"].get("finalizers"):
            self._asked("delete")
            going = {**item["metadata"], "deletionTimestamp": "2026-11-26T00:00:00Z"}
            return self._keep({**item, "metadata": going})
        gone = await super().delete(resource, name, namespace, **more)
        self._log.append((next(self._numbers), "DELETED", gone))
        return gone

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
        """All that have the labels."""
        self._asked("list")
        items = [item for item in self.items.values() if _has(item, label_selector)]
        version = str(self._log[-1][0] if self._log else 0)
        return Page(msgspec.json.encode({"metadata": {"resourceVersion": version}, "items": items}))

    async def watch(
        self,
        resource: Resource,
        resource_version: str,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[tuple[str, Object]]:
        """Each change since, without an end."""
        seen = int(resource_version)
        while True:
            self._asked("watch")
            for version, kind, item in [] if self.late else [one for one in self._log if one[0] > seen]:
                seen = version
                if _has(item, label_selector):
                    metadata = {**item["metadata"], "resourceVersion": str(version)}
                    yield kind, {**item, "metadata": metadata}
            await asyncio.sleep(0.001)

    def _asked(self, verb: str) -> None:
        if verb not in ("list", "watch"):
            self.asked.append(verb)
        if self.down:
            raise aiohttp.ClientConnectionError("it does not answer")
        super()._asked(verb)

    def _keep(self, item: Object) -> Object:
        metadata = item["metadata"]
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            gone = self.items.pop((metadata["namespace"], metadata["name"]))
            self._log.append((next(self._numbers), "DELETED", gone))
            return item
        before = self.items.get((metadata["namespace"], metadata["name"]), {"metadata": {}})
        changed = before.get("spec") != item.get("spec")
        generation = before["metadata"].get("generation", 0) + changed
        kept = super()._keep({**item, "metadata": {**metadata, "generation": generation}})
        kind = "ADDED" if not self.asked or self.asked[-1] == "create" else "MODIFIED"
        self._log.append((int(kept["metadata"]["resourceVersion"]), kind, kept))
        return kept


def _has(item: Object, label_selector: str) -> bool:
    labels = item["metadata"].get("labels") or {}
    return all(
        labels.get(key) == value for key, _, value in (one.partition("=") for one in label_selector.split(",")) if key
    )
