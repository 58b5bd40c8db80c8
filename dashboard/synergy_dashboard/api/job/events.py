"""What the events of jobs say, read at little cost for the API server.

The API server has no index of events: each question makes it read all events of the namespace from etcd, tens of
thousands where many jobs run, and each open page of a job asks again every few seconds. So one read answers for all
jobs of a namespace, until it is old.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from synergy_dashboard.api.problems import CALL_FAILED, explain
from synergy_kube import KubeClient
from synergy_kube.resources import EVENTS
from synergy_view.history import Happening, told_by

_LOG = logging.getLogger(__name__)
IDLE: Final = 20.0
"""An answer serves for so many times the seconds that its read took."""
_LEAST_S: Final = 2.0
_MOST_S: Final = 300.0
"""The least and the most seconds for which an answer serves."""
_FAILED_S: Final = 30.0
"""The most seconds until the next read after one that failed."""
_PATIENCE_S: Final = 2.0
"""`of` waits so many seconds for a read. Then it returns what the last one found; pages ask again soon."""
_READS: Final = 2
"""So many namespaces are read at a time."""
_KEPT_S: Final = 600.0
"""`of` forgets a namespace that no page has asked for in so many seconds."""
_SELECTOR: Final = "involvedObject.kind=TrainingJob"


@dataclass(slots=True)
class _Known:
    """The newest read of a namespace. Times are those of the clock."""

    asked: float
    good_until: float
    by_job: Mapping[str, Sequence[Happening]] = field(default_factory=dict)
    reading: asyncio.Task[None] | None = None


class JobEvents:
    """Reads the events of TrainingJobs, by namespace."""

    def __init__(self, client: KubeClient, clock: Callable[[], float]) -> None:
        """`clock` gives seconds that never go back."""
        self._client = client
        self._clock = clock
        self._namespaces: dict[str, _Known] = {}
        self._turns = asyncio.Semaphore(_READS)

    async def of(self, namespace: str, uid: str) -> Sequence[Happening]:
        """What the API server's events say of the job, in no order, as the last read that worked had it: usually
        seconds old, minutes where the read is slow. Nothing before the first one."""
        now = self._clock()
        for name in [name for name, one in self._namespaces.items() if one.asked + _KEPT_S < now]:
            del self._namespaces[name]
        known = self._namespaces.setdefault(namespace, _Known(now, good_until=now))
        known.asked = now
        if known.reading is None and now >= known.good_until:
            known.reading = asyncio.create_task(self._read(namespace, known))
        if known.reading is not None:
            await asyncio.wait({known.reading}, timeout=_PATIENCE_S)  # it goes on if this one leaves
        return known.by_job.get(uid, ())

    async def _read(self, namespace: str, known: _Known) -> None:
        async with self._turns:
            begun, longest = self._clock(), _FAILED_S
            try:
                known.by_job = await self._newest(namespace)
                longest = _MOST_S
            except CALL_FAILED as error:
                _LOG.warning("the events of namespace %s cannot be read: %s", namespace, explain(error))
            finally:
                ended, known.reading = self._clock(), None
                known.good_until = ended + min(max(_LEAST_S, IDLE * (ended - begun)), longest)

    async def _newest(self, namespace: str) -> Mapping[str, Sequence[Happening]]:
        found: defaultdict[str, list[Happening]] = defaultdict(list)
        async for page in self._client.pages(EVENTS, namespace, field_selector=_SELECTOR):
            for uid, happening in filter(None, map(told_by, page)):
                found[uid].append(happening)
        return dict(found)
