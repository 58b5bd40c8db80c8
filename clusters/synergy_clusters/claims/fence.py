"""Raises the hub's mark in its own cluster and in worker clusters, and refuses to act where another has raised it."""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import aiohttp

from synergy_clusters.claims.marks import (
    ANNOTATION_TAKE_OVER,
    HUB_LEASE,
    Mark,
    is_foreign,
    mark_of,
    refusal,
    spec_of,
    worker_lease,
)
from synergy_clusters.worker_clusters.worker import Worker
from synergy_kube import ApiError, Conflict, KubeClient, NotFound
from synergy_kube.resources import LEASES

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 1.0
_PROBLEM_SECONDS: Final = 10.0
"""Until a cluster that could not get the mark is tried again, if nothing else raises it."""
_ANSWER_SECONDS: Final = 5.0
_TRIES: Final = 5
Lease = Mapping[str, Any]


class Refused(Exception):  # noqa: N818 - no error
    """Another controller acts for this hub, or did so after the hub's data was saved."""


class Fence:
    """One for each process. `hub` identifies the hub cluster; `namespace` is that of the Leases. `unconnected` are the
    worker clusters of the set that are not followed, for example because their kubeconfig cannot be used."""

    def __init__(
        self,
        client: KubeClient,
        hub: str,
        namespace: str,
        workers: Callable[[], Iterable[Worker]],
        unconnected: Callable[[], Iterable[str]],
    ) -> None:
        self._client = client
        self._name = worker_lease(hub)
        self._namespace = namespace
        self._workers = workers
        self._unconnected = unconnected
        self._holder = str(uuid.uuid4())
        self._lock = asyncio.Lock()
        self._begun = 0
        self._done = 0
        self._failed = 0.0
        self.refused = ""
        """Why this controller must not act now; empty if it may."""

    async def run(self) -> None:
        """Raise the mark whenever a worker cluster comes, until cancelled."""
        while True:
            missing = [worker for worker in self._workers() if worker.answers and not worker.claimed]
            rest = time.monotonic() < self._failed + _PROBLEM_SECONDS
            if missing and not (rest and all(worker.problem for worker in missing)):
                self._failed = time.monotonic()
                try:
                    await self.advance()
                except Refused:
                    pass
                except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
                    _LOG.warning("the hub's mark: %s", error)
            await asyncio.sleep(_LOOK_SECONDS)

    async def advance(self) -> None:
        """Return once the mark has been raised after this call, in every worker cluster that answers. Calls that wait
        at the same time share one raise.

        Raises Refused; ApiError, aiohttp.ClientError or TimeoutError if the hub's API server fails.
        """
        before = self._begun
        async with self._lock:
            if self._done > before:
                return
            self._begun += 1
            await self._raise()
            self._done = self._begun

    async def _raise(self) -> None:
        for _ in range(_TRIES):
            workers = [worker for worker in self._workers() if worker.answers]
            found = dict(zip(workers, await asyncio.gather(*map(self._read, workers)), strict=True))
            hub = await _lease(self._client, HUB_LEASE, self._namespace)
            own = mark_of(hub)
            marks = {worker.name: mark_of(lease) for worker, lease in found.items() if not isinstance(lease, str)}
            self._check(marks, own, hub)
            raised = Mark(max(own.number, *(mark.number for mark in marks.values()), 0) + 1, self._holder)
            try:
                await _write(self._client, HUB_LEASE, self._namespace, hub, raised)
            except Conflict:
                continue  # another controller of this hub: look again
            done = await asyncio.gather(*(self._put(worker, lease, raised) for worker, lease in found.items()))
            if all(done):
                return
        raise TimeoutError("other controllers raise the hub's mark all the time")

    def _check(self, marks: Mapping[str, Mark], own: Mark, hub: Lease | None) -> None:
        """Raises Refused, unless an administrator has said that the other controller has ended."""
        foreign = {name: mark for name, mark in marks.items() if is_foreign(mark, own)}
        if foreign:
            annotations = ((hub or {}).get("metadata") or {}).get("annotations") or {}
            highest = max(mark.number for mark in foreign.values())
            missing = sorted({*self._unconnected(), *(worker.name for worker in self._workers())} - marks.keys())
            wanted = annotations.get(ANNOTATION_TAKE_OVER) == str(highest)
            if not wanted or missing:
                why = refusal(foreign, own, self._namespace)
                self._refuse(f"{why}. These do not answer: {', '.join(missing)}" if missing else why)
            _LOG.warning("the hub takes over from mark %d", highest)
        self.refused = ""

    def _refuse(self, why: str) -> None:
        if why != self.refused:
            _LOG.error("%s", why)
        self.refused = why
        for worker in self._workers():
            worker.claim("another controller has acted there for this hub")
        raise Refused(why)

    async def _read(self, worker: Worker) -> Lease | str | None:
        """The Lease, None if there is none, or why it cannot be read."""
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await _lease(worker.client, self._name, self._namespace)
        except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
            return f"its Leases in namespace {self._namespace} cannot be read: {error}"

    async def _put(self, worker: Worker, lease: Lease | str | None, mark: Mark) -> bool:
        """Write the mark there. Returns False if somebody else has just done so."""
        problem = ""
        if isinstance(lease, str):
            problem = lease
        else:
            try:
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await _write(worker.client, self._name, self._namespace, lease, mark)
            except Conflict:
                return False
            except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
                problem = f"its Leases in namespace {self._namespace} cannot be written: {error}"
        if problem and problem != worker.problem:
            _LOG.error("cluster %s: %s", worker.name, problem)
        worker.claim(problem)
        return True


async def _lease(client: KubeClient, name: str, namespace: str) -> Lease | None:
    try:
        return await client.get(LEASES, name, namespace)
    except NotFound:
        return None


async def _write(client: KubeClient, name: str, namespace: str, before: Lease | None, mark: Mark) -> None:
    """Raises Conflict if the Lease is no longer as it was read."""
    if before is None:
        await client.create(LEASES, {"metadata": {"name": name, "namespace": namespace}, **spec_of(mark)}, namespace)
        return
    metadata = {
        "resourceVersion": before["metadata"]["resourceVersion"],
        "annotations": {ANNOTATION_TAKE_OVER: None},
    }
    await client.merge_patch(LEASES, name, {"metadata": metadata, **spec_of(mark)}, namespace)
