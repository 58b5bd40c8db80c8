"""A local copy of a collection, kept by list and watch."""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import aiohttp

from synergy_kube.answers import Object
from synergy_kube.client import KubeClient
from synergy_kube.errors import ApiError, Gone, NotFound
from synergy_kube.paging import PAGE_ITEMS
from synergy_kube.resources import Resource

_LOG = logging.getLogger(__name__)
_BACKOFF_FIRST_SECONDS = 0.2
_BACKOFF_MOST_SECONDS = 5.0
_SHORT_WATCH_SECONDS = 1.0
_STRETCH_SECONDS = 0.0005
"""For how long changes are taken without a break: others on the event loop answer requests."""
_LARGER_PAGE_ITEMS = 4 * PAGE_ITEMS
"""More would not help: of usual objects so many are as large as a page may be."""
_AHEAD_CODE = 504
"""The answer to a version that the API server has not come to, as after its data was restored from a backup."""
_EXPIRED_LISTS = 3
"""So many lists in a row that expired before their last page begin anew at once."""

Key = tuple[str, str]
"""(namespace, name); the namespace is empty for cluster resources."""


@dataclass(frozen=True, slots=True)
class Change:
    """One object came (`old` is None), changed, or went (`new` is None)."""

    key: Key
    old: Object | None
    new: Object | None


class Reflector:
    """Keeps `items` equal to the server's collection and reports each change.

    `trim` reduces an object to what is needed before it is kept (memory); it must leave name, namespace and
    resourceVersion. `on_change` is called on the event loop, after the copy has changed; it also reports objects that
    went while the watch was down. If `trim` leaves the uid, an object that was replaced by another of its name is
    reported as one that went and one that came.

    The collection is read in pages, each of which is trimmed before the next is requested. `on_restart` gets the
    resource and the cause (`expired`, `error`) when a watch does not end by itself. An `optional` collection counts as
    empty while the API server does not have the resource at all, as before an upgrade of the CRDs.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: Resource,
        *,
        label_selector: str = "",
        namespace: str | None = None,
        trim: Callable[[Object], Object] | None = None,
        on_change: Callable[[Change], None] | None = None,
        on_restart: Callable[[str, str], None] | None = None,
        optional: bool = False,
    ) -> None:
        self._client = client
        self._resource = resource
        self._label_selector = label_selector
        self._namespace = namespace
        self._trim = trim or (lambda item: item)
        self._on_change = on_change or (lambda change: None)
        self._on_restart = on_restart or (lambda resource, cause: None)
        self._optional = optional
        self._items: dict[Key, Object] = {}
        self._version: str | None = None
        self._rested = 0.0
        self.synced = asyncio.Event()

    def begin_with(self, items: Mapping[Key, Object], version: str) -> None:
        """Go on where another left off: `items`, trimmed, are the collection at `version`. To be called before `run`.

        Only later changes are reported. If the API server has forgotten that version, or `version` is empty, the
        collection is listed and differences from `items` are reported.
        """
        self._items = dict(items)
        self._version = version or None
        if version:
            self.synced.set()

    @property
    def version(self) -> str:
        """The collection's version after all reported changes; empty while it is listed."""
        return self._version or ""

    @property
    def items(self) -> Mapping[Key, Object]:
        """The copy. Do not change the objects."""
        return self._items

    def __iter__(self) -> Iterator[Object]:
        return iter(self._items.values())

    def get(self, namespace: str, name: str) -> Object | None:
        """One object of the copy."""
        return self._items.get((namespace, name))

    async def read_once(self, namespace: str | None = None) -> None:
        """Read the collection now and do not follow it; with `namespace` only what is in that one. `run` goes on from
        there.

        Raises ApiError, aiohttp.ClientError or TimeoutError.
        """
        if namespace is not None:
            self._namespace = namespace
        self._version = await self._relist()

    async def run(self) -> None:
        """Follow the collection until cancelled; the server's absence is waited out."""
        backoff = _BACKOFF_FIRST_SECONDS
        while True:
            started = asyncio.get_running_loop().time()
            try:
                if self._version is None:
                    self._version = await self._relist()
                self._rested = time.monotonic()
                async for kind, item in self._client.watch(
                    self._resource, self._version, self._namespace, label_selector=self._label_selector
                ):
                    self._version = item["metadata"]["resourceVersion"]
                    self._take(kind, item)
                    backoff = _BACKOFF_FIRST_SECONDS
                    await self._rest()
                if asyncio.get_running_loop().time() - started < _SHORT_WATCH_SECONDS:
                    await asyncio.sleep(_BACKOFF_FIRST_SECONDS)  # a server that is going down ends watches at once
            except Gone:
                self._version = None
                self._on_restart(self._resource.plural, "expired")
                if asyncio.get_running_loop().time() - started < _SHORT_WATCH_SECONDS:
                    await asyncio.sleep(_BACKOFF_FIRST_SECONDS)  # a list that is too old at once, again and again
            except NotFound as error:
                self._version = None
                self._missing(error)
                await asyncio.sleep(_BACKOFF_MOST_SECONDS)
            except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
                _LOG.warning("watching %s: %s", self._resource.plural, error)
                if isinstance(error, ApiError) and error.code == _AHEAD_CODE:
                    self._version = None
                self._on_restart(self._resource.plural, "error")
                await asyncio.sleep(backoff * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, not a secret
                backoff = min(backoff * 2, _BACKOFF_MOST_SECONDS)

    def _missing(self, error: NotFound) -> None:
        _LOG.warning("watching %s: the API server does not have them: %s", self._resource.plural, error)
        if self._optional:
            for key in list(self._items):
                self._forget(key)
            self.synced.set()

    async def _relist(self) -> str:
        """Read the whole collection. Returns the version that all its pages show.

        The API server forgets a version after some minutes: a list that takes longer begins anew, with more objects
        in a page. Raises Gone if the last of these lists has expired too.
        """
        most = PAGE_ITEMS
        for _ in range(_EXPIRED_LISTS):
            try:
                return await self._read_pages(most)
            except Gone:
                _LOG.warning("the list of %s expired before its last page", self._resource.plural)
                most = _LARGER_PAGE_ITEMS
        return await self._read_pages(most)

    async def _read_pages(self, most: int) -> str:
        """Objects that are not in the list are forgotten once its last page is there: before, they may yet come."""
        missing = set(self._items)
        version = ""
        self._rested = time.monotonic()
        async with aclosing(
            self._client.pages(self._resource, self._namespace, label_selector=self._label_selector, most=most)
        ) as pages:
            async for page in pages:
                version = page.version
                for item in page:
                    missing.discard(_key(item))
                    self._keep(item)
                    await self._rest()
        for key in missing:
            self._forget(key)
            await self._rest()
        self.synced.set()
        return version

    async def _rest(self) -> None:
        """Let others on the event loop go on, if objects have been taken for a while."""
        if time.monotonic() > self._rested + _STRETCH_SECONDS:
            await asyncio.sleep(0)
            self._rested = time.monotonic()

    def _take(self, kind: str, item: Object) -> None:
        if kind in ("ADDED", "MODIFIED"):
            self._keep(item)
        elif kind == "DELETED":
            self._forget(_key(item))

    def _keep(self, item: Object) -> None:
        key = _key(item)
        old = self._items.get(key)
        if old is not None and _version(old) == _version(item):
            return
        if old is not None and _replaced(old, item):
            self._forget(key)
            old = None
        new = self._trim(item)
        self._items[key] = new
        self._on_change(Change(key, old, new))

    def _forget(self, key: Key) -> None:
        old = self._items.pop(key, None)
        if old is not None:
            self._on_change(Change(key, old, None))


def _key(item: Mapping[str, Any]) -> Key:
    metadata = item["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _version(item: Mapping[str, Any]) -> str:
    return str(item["metadata"].get("resourceVersion", ""))


def _replaced(old: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    uid = old["metadata"].get("uid")
    return uid is not None and uid != item["metadata"].get("uid")
