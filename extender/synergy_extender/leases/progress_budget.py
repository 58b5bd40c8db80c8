"""How many writes of progress a cluster bears: reports wait for their turn, the newest of each job counts."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from synergy_extender.cluster.views import Key
from synergy_extender.leases.reports import Reported

_LOG = logging.getLogger(__name__)
LOOKED_AT_SECONDS = 60.0
"""How long a job that a person asked about stays ahead of the others."""
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Heard:
    """The newest report of a job that this replica received, and when (seconds of the queue's clock)."""

    reported: Reported
    at: float


class ProgressBudget:
    """Calls `write` with the newest report of one job after another, at most `per_second` times a second.

    Jobs take turns. A job that has reported for the first time in its run comes first, and so does one that a person
    has asked about. `write` says whether it wrote; a report that changes nothing costs no turn. `clock` gives monotonic
    seconds.
    """

    def __init__(
        self,
        write: Callable[[Key, Reported], Awaitable[bool]],
        per_second: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._per_second = per_second
        self._clock = clock
        self._waiting: OrderedDict[Key, Reported] = OrderedDict()
        self._heard: dict[Key, Heard] = {}
        self._looked_at: dict[Key, float] = {}
        self._turns = max(1.0, per_second)
        self._counted_at = clock()
        self._something = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting)

    def offer(self, key: Key, reported: Reported) -> None:
        """A report came. It takes the place of the job's report that waits."""
        before = self._heard.get(key)
        self._heard[key] = Heard(reported, self._clock())
        first = before is None or (before.reported.uid, before.reported.run) != (reported.uid, reported.run)
        self._waiting[key] = reported
        if first or self._looked_at.get(key, float("-inf")) > self._clock() - LOOKED_AT_SECONDS:
            self._waiting.move_to_end(key, last=False)
        self._something.set()

    def take(self, key: Key, reported: Reported) -> None:
        """A report that another writer writes at once: what waits of the job is older."""
        self._heard[key] = Heard(reported, self._clock())
        self._waiting.pop(key, None)

    def newest(self, key: Key, uid: str) -> Heard | None:
        """The last report of the job with this uid that this replica received, for a person. The job comes first for a
        while."""
        self._looked_at[key] = self._clock()
        if key in self._waiting:
            self._waiting.move_to_end(key, last=False)
            self._something.set()
        heard = self._heard.get(key)
        return heard if heard is not None and heard.reported.uid == uid else None

    def keep(self, jobs: Collection[Key]) -> None:
        """Forget all other jobs."""
        for known in (self._waiting, self._heard, self._looked_at):
            for key in [key for key in known if key not in jobs]:
                del known[key]

    async def run(self) -> None:
        """Write until cancelled."""
        slots = asyncio.Semaphore(_AT_ONCE)
        async with asyncio.TaskGroup() as group:
            while True:
                await self._something.wait()
                await asyncio.sleep(self._wait_s())
                await slots.acquire()
                if not self._waiting:
                    self._something.clear()
                    slots.release()
                    continue
                key, reported = self._waiting.popitem(last=False)
                self._turns -= 1.0
                group.create_task(self._one(key, reported, slots))

    async def _one(self, key: Key, reported: Reported, slots: asyncio.Semaphore) -> None:
        try:
            if not await self._write(key, reported):
                self._turns += 1.0
        except Exception:  # noqa: BLE001 - whatever one job's report does, the others' are written
            _LOG.exception("the progress of %s is not written", key)
        finally:
            slots.release()

    def _wait_s(self) -> float:
        """Seconds until there is a turn."""
        now = self._clock()
        most = max(1.0, self._per_second)
        self._turns = min(most, self._turns + (now - self._counted_at) * self._per_second)
        self._counted_at = now
        return max(0.0, (1.0 - self._turns) / self._per_second)
