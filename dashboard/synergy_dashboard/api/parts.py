"""What the routes of the API need."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from synergy_dashboard.api.job.events import JobEvents
from synergy_dashboard.api.people import People
from synergy_dashboard.api.problems import Refusal
from synergy_dashboard.api.what_if import Futures
from synergy_dashboard.facts import History, UseSample
from synergy_dashboard.live.cluster import LiveCluster
from synergy_kube import KubeClient

_USE_SECONDS: Final = 86_400.0
_USE_CACHE_SECONDS: Final = 5.0


@dataclass(frozen=True)
class ApiParts:
    """`client` reads single objects, `version` is that of kube-synergy, `clock` never goes back."""

    live: LiveCluster
    store: History
    client: KubeClient
    people: People
    futures: Futures
    events: JobEvents
    version: str
    clock: Callable[[], float] = time.monotonic
    _use: list[tuple[float, tuple[list[UseSample], float | None]]] = field(default_factory=list)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    def check_synced(self) -> None:
        """Raises Refusal 503 until the cluster has been read."""
        if not self.live.synced:
            raise Refusal(503, "the cluster has not been read yet")

    async def use(self) -> tuple[list[UseSample], float | None]:
        """The use of the cluster in the last day, and the earliest time that the history knows. All users get the same
        answer, so it is read from the database at most once in a few seconds."""
        async with self._reading:
            if not self._use or self._use[0][0] + _USE_CACHE_SECONDS < self.clock():
                self._use[:] = [(self.clock(), await asyncio.to_thread(self._read_use))]
            return self._use[0][1]

    def _read_use(self) -> tuple[list[UseSample], float | None]:
        now = self.live.clock()
        return list(self.store.use(now - _USE_SECONDS, now)), self.store.first_s()
