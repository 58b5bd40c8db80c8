"""Work by key: each key by one worker at a time, several events handled at once, failures repeated later."""

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

import aiohttp

from synergy_kube import ApiError

_LOG = logging.getLogger(__name__)
_FIRST_RETRY_SECONDS: Final = 0.1
_MOST_RETRY_SECONDS: Final = 30.0
_STUCK_SECONDS: Final = 180.0
_PASSING_EVERY: Final = 8
"""Of so many turns one is for a key that waits in passing."""

Key = TypeVar("Key")


class TryAgain(Exception):  # noqa: N818 - a request, not an error
    """The work rested on outdated data. It is repeated shortly."""


class FairQueue(Generic[Key]):
    """A queue of keys: first in, first out within a group, one key of each group in turn. Many keys of one group do not
    delay those of another."""

    def __init__(self, group: Callable[[Key], Hashable]) -> None:
        self._group = group
        self._waiting: OrderedDict[Hashable, deque[Key]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, key: Key) -> None:
        """Add a key."""
        self._waiting.setdefault(self._group(key), deque()).append(key)
        self._length += 1

    def popleft(self) -> Key:
        """Remove and return the next key. Raises KeyError if there is none."""
        group, keys = self._waiting.popitem(last=False)
        key = keys.popleft()
        if keys:
            self._waiting[group] = keys
        self._length -= 1
        return key


class WorkQueue(Generic[Key]):
    """Calls `work(key)` for each key that was added. It returns the seconds until the key's next turn, or None.

    A key that is added while it is worked on is worked on again afterwards. A key that waits is not added twice. Keys
    that are added in passing give way to others, but for some turns.
    """

    def __init__(
        self,
        work: Callable[[Key], Awaitable[float | None]],
        *,
        workers: int = 16,
        group: Callable[[Key], Hashable] = lambda key: None,
    ) -> None:
        """`group` gives the group of a key; groups take turns."""
        self._work = work
        self._workers = workers
        self._waiting = FairQueue(group)
        self._in_passing: OrderedDict[Key, None] = OrderedDict()
        self._turns = 0
        self._queued: dict[Key, float] = {}
        self._running: dict[Key, float] = {}
        self._again: set[Key] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._failures: dict[Key, int] = {}
        self._wakeup = asyncio.Semaphore(0)
        self.idle = asyncio.Event()
        """Set while no key waits for a worker."""
        self.idle.set()

    def add(self, key: Key) -> None:
        """Work on the key as soon as possible."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        if key in self._running:
            self._again.add(key)
        elif key in self._in_passing:
            del self._in_passing[key]
            self._waiting.append(key)
        elif key not in self._queued:
            self._waiting.append(key)
            self._enter(key)

    def add_in_passing(self, key: Key) -> None:
        """Work on the key when others leave time for it. Its timer stays."""
        if key in self._running:
            self._again.add(key)
        elif key not in self._queued:
            self._in_passing[key] = None
            self._enter(key)

    def _enter(self, key: Key) -> None:
        self._queued[key] = time.monotonic()
        self.idle.clear()
        self._wakeup.release()

    def add_after(self, key: Key, seconds: float) -> None:
        """Work on the key after a delay. Of several delays the earliest counts."""
        loop = asyncio.get_running_loop()
        timer = self._timers.get(key)
        if timer is not None and timer.when() <= loop.time() + seconds:
            return
        if timer is not None:
            timer.cancel()
        self._timers[key] = loop.call_later(seconds, self.add, key)

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._worker())

    @property
    def length(self) -> int:
        """The number of keys that wait for a worker."""
        return len(self._queued)

    @property
    def oldest_seconds(self) -> float:
        """How long the first of them has waited."""
        first = next(iter(list(self._queued.values())), None)  # in the order of the queue
        return 0.0 if first is None else time.monotonic() - first

    @property
    def stuck(self) -> bool:
        """Some key has been worked on for longer than any work may take."""
        now = asyncio.get_running_loop().time()
        return any(now - began > _STUCK_SECONDS for began in self._running.values())

    async def _worker(self) -> None:
        while True:
            await self._wakeup.acquire()
            key = self._next()
            del self._queued[key]
            if not self._queued:
                self.idle.set()
            self._running[key] = asyncio.get_running_loop().time()
            try:
                await self._once(key)
            finally:
                del self._running[key]
            if key in self._again:
                self._again.discard(key)
                self.add(key)

    def _next(self) -> Key:
        self._turns += 1
        passing = not self._waiting or (self._in_passing and self._turns % _PASSING_EVERY == 0)
        return self._in_passing.popitem(last=False)[0] if passing else self._waiting.popleft()

    async def _once(self, key: Key) -> None:
        try:
            wait = await self._work(key)
        except Exception as error:  # noqa: BLE001 - one key's failure must never stop the others
            self._failed(key, error)
            return
        self._failures.pop(key, None)
        if wait is not None:
            self.add_after(key, wait)

    def _failed(self, key: Key, error: Exception) -> None:
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        wait = min(_MOST_RETRY_SECONDS, _FIRST_RETRY_SECONDS * float(1 << min(failures - 1, 16)))
        if isinstance(error, TryAgain):
            _LOG.debug("%s: %s; again in %.1f s", key, error, wait)
        elif isinstance(error, ApiError | aiohttp.ClientError | TimeoutError | OSError):
            _LOG.warning("%s: %s; again in %.1f s", key, error, wait)
        else:
            _LOG.error("%s: again in %.1f s", key, wait, exc_info=error)
        self.add_after(key, wait)
