"""Reads: objects, collections in pages, watches and logs."""

from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial

from synergy_kube.answers import Object, Page, event_of, lines_of
from synergy_kube.paging import PAGE_ITEMS, in_pages
from synergy_kube.resources import PODS, Resource
from synergy_kube.transport import Requests

WATCH_SECONDS = 10
"""Seconds after which the server ends a watch."""
SILENT_SECONDS = 15.0
"""A watch on which nothing comes for so long, not even its end, is dead. What was read until then must not pass for the
present for long."""
_WATCH_CHUNK = 1 << 16
_METADATA_ALONE = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}


class Reads(Requests):
    """What the API server shows."""

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> Object:
        """One object."""
        return await self._call("GET", resource.path(namespace, name))

    async def list(
        self, resource: Resource, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
    ) -> Object:
        """A collection in one answer: `items`, and `metadata.resourceVersion` to watch from. It is held in memory as a
        whole: use `pages` for one that may be large."""
        return await self._call("GET", resource.path(namespace), query=_selectors(label_selector, field_selector))

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
        """At most `most` objects of a collection, those that follow the page whose `rest` is `after`.

        Every page has its own time limit. Raises Gone if `after` is too old to go on from: begin anew. Raises
        LongAnswer if the objects have more than `most_bytes` as JSON; 0 is no limit.
        """
        query = _selectors(label_selector, field_selector) | _part(most, after)
        return Page(await self._bytes("GET", resource.path(namespace), query=query, most_bytes=most_bytes))

    def pages(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        most: int = PAGE_ITEMS,
    ) -> AsyncGenerator[Page]:
        """A collection that may be large, in pages of at most `most` objects that all show the same version. Of large
        objects a page has fewer (`synergy_kube.paging`). Handle each page before you ask for the next: it is empty
        then.

        Raises Gone if the API server forgets that version before the last page: begin anew, with more objects a page.
        """
        ask = partial(self.page, resource, namespace, label_selector=label_selector, field_selector=field_selector)
        return in_pages(ask, most, resource.plural)

    async def versions(self, resource: Resource, namespace: str | None = None) -> dict[tuple[str, str], str]:
        """The resourceVersion of each object of a collection now, by namespace and name. The API server sends metadata
        alone, of which nothing else is decoded.

        Raises like `pages`.
        """

        async def ask(*, most: int, after: str, most_bytes: int) -> Page:
            path, query = resource.path(namespace), _part(most, after)
            return Page(await self._bytes("GET", path, query=query, headers=_METADATA_ALONE, most_bytes=most_bytes))

        found: dict[tuple[str, str], str] = {}
        async for page in in_pages(ask, PAGE_ITEMS, resource.plural):
            found.update(page.versions())
        return found

    async def watch(
        self,
        resource: Resource,
        resource_version: str,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[tuple[str, Object]]:
        """Events after `resource_version` as (ADDED | MODIFIED | DELETED | BOOKMARK, object), until the server ends
        the watch (at the latest after ten seconds: watch again from the last version seen).

        Raises Gone if `resource_version` is too old: list anew.
        """
        query = _selectors(label_selector, field_selector) | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        async with self._stream(resource.path(namespace), query, SILENT_SECONDS) as response:
            buffer = bytearray()
            async for chunk in response.content.iter_chunked(_WATCH_CHUNK):
                buffer += chunk
                *lines, rest = bytes(buffer).split(b"\n")
                buffer = bytearray(rest)
                for line in lines:
                    if line:
                        yield event_of(line)

    async def log_lines(
        self, pod: str, namespace: str, *, container: str = "", follow: bool = False, tail: int | None = None
    ) -> AsyncIterator[bytes]:
        """A container's log by line, without the line ends; with `follow` until the container ends. The container may
        be left out where the pod has one only."""
        query = {"follow": "true"} if follow else {}
        query |= {"container": container} if container else {}
        query |= {"tailLines": str(tail)} if tail is not None else {}
        async with self._stream(PODS.path(namespace, pod, "log"), query) as response:
            async for line in lines_of(response.content.iter_any()):
                yield line


def _part(most: int, after: str) -> dict[str, str]:
    return {"limit": str(most)} | ({"continue": after} if after else {})


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    pairs = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {key: value for key, value in pairs.items() if value}
