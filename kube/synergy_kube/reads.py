"""Reads: objects, collections in pages, watches and logs."""

from collections.abc import AsyncGenerator, AsyncIterator

from synergy_kube.answers import Object, Page, event_of, lines_of
from synergy_kube.errors import ApiError
from synergy_kube.resources import PODS, Resource
from synergy_kube.transport import Requests

WATCH_SECONDS = 10
"""Seconds after which the server ends a watch."""
SILENT_SECONDS = 15.0
"""A watch on which nothing comes for so long, not even its end, is dead. What was read until then must not pass for the
present for long."""
_WATCH_CHUNK = 1 << 16
PAGE_ITEMS = 500
"""Objects of a large collection in one answer, as kube-apiserver's own clients ask for them."""
_PAGES_MOST = 10_000
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
    ) -> Page:
        """At most `most` objects of a collection (0: all of them), those that follow the page whose `rest` is `after`.

        Every page has its own time limit. Raises Gone if `after` is too old to go on from: begin anew.
        """
        query = _selectors(label_selector, field_selector) | ({"limit": str(most)} if most else {})
        query |= {"continue": after} if after else {}
        return Page(await self._bytes("GET", resource.path(namespace), query=query))

    async def pages(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
        most: int = PAGE_ITEMS,
    ) -> AsyncGenerator[Page]:
        """A collection that may be large, in pages that all show the same version. Handle each page before you ask for
        the next: only one is in memory.

        Raises Gone if the API server forgets that version before the last page: begin anew, with larger pages.
        """
        rest = ""
        for _ in range(_PAGES_MOST):
            page = await self.page(
                resource, namespace, label_selector=label_selector, field_selector=field_selector, most=most, after=rest
            )
            rest = page.rest
            yield page
            del page
            if not rest:
                return
        raise _endless(resource)

    async def versions(self, resource: Resource, namespace: str | None = None) -> dict[tuple[str, str], str]:
        """The resourceVersion of each object of a collection now, by namespace and name. The API server sends metadata
        alone, of which nothing else is decoded.

        Raises like `pages`.
        """
        found: dict[tuple[str, str], str] = {}
        rest = ""
        for _ in range(_PAGES_MOST):
            query = {"limit": str(PAGE_ITEMS)} | ({"continue": rest} if rest else {})
            page = Page(await self._bytes("GET", resource.path(namespace), query=query, headers=_METADATA_ALONE))
            found.update(page.versions())
            rest = page.rest
            if not rest:
                return found
        raise _endless(resource)

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


def _endless(resource: Resource) -> ApiError:
    return ApiError(500, "TooManyPages", f"the list of {resource.plural} does not end")


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    pairs = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {key: value for key, value in pairs.items() if value}
