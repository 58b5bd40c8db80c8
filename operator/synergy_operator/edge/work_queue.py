"""Work by key: each key by one worker at a time, several events handled at once, failures repeated later."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, Protocol, TypeVar

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


class Line(Protocol[Key]):
    """Keys that wait."""

    def __len__(self) -> int: ...

    def append(self, key: Key) -> None:
        """Add a key, or move it to where it belongs now."""

    def remove(self, key: Key) -> None:
        """Take a key that waits out of the line."""

    def popleft(self) -> Key:
        """Remove and return the next key. Raises KeyError if there is none."""


class InOrder(Generic[Key]):
    """First in, first out. A key that waits keeps its place."""

    def __init__(self) -> None:
        self._keys: OrderedDict[Key, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._keys)

    def append(self, key: Key) -> None:
        """Add a key."""
        self._keys.setdefault(key)

    def remove(self, key: Key) -> None:
        """Take a key that waits out of the line."""
        del self._keys[key]

    def popleft(self) -> Key:
        """Remove and return the next key. Raises KeyError if there is none."""
        return self._keys.popitem(last=False)[0]


class FairQueue(Generic[Key]):
    """A line for each group, and one key of each in turn. Many keys of one group do not delay those of another."""

    def __init__(self, group: Callable[[Key], Hashable], line: Callable[[], Line[Key]] = InOrder) -> None:
        """`group` gives the group of a key, `line` makes the line of a group."""
        self._group = group
        self._line = line
        self._waiting: OrderedDict[Hashable, Line[Key]] = OrderedDict()
        self._groups: dict[Key, Hashable] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def append(self, key: Key) -> None:
        """Add a key. One that waits moves to the end of its group's line if the group is another one now."""
        group = self._group(key)
        if key in self._groups and self._groups[key] != group:
            self.remove(key)
        self._groups[key] = group
        if group not in self._waiting:
            self._waiting[group] = self._line()
        self._waiting[group].append(key)

    def remove(self, key: Key) -> None:
        """Take a key that waits out of the queue."""
        group = self._groups.pop(key)
        self._waiting[group].remove(key)
        if not len(self._waiting[group]):
            del self._waiting[group]

    def popleft(self) -> Key:
        """Remove and return the next key. Raises KeyError if there is none."""
        group, line = self._waiting.popitem(last=False)
        key = line.popleft()
        del self._groups[key]
        if len(line):
            self._waiting[group] = line
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
        line: Line[Key] | None = None,
    ) -> None:
        """`line` says in which order keys have their turns; None: first in, first out."""
        self._work = work
        self._workers = workers
        self._waiting: Line[Key] = line if line is not None else InOrder()
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
        else:
            self._in_passing.pop(key, None)
            self._waiting.append(key)
            if key not in self._queued:
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
        passing = not len(self._waiting) or (self._in_passing and self._turns % _PASSING_EVERY == 0)
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
