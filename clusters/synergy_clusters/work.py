"""Which jobs the dispatcher looks at, and when: those of which something is heard at once, all others in turn."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final

from synergy_clusters.views import Key

ROUND_SECONDS: Final = 60.0
"""All jobs are looked at once in so long, if they are not too many for that."""
MOST_IN_TURN: Final = 50
"""Jobs of a look, whatever their number: 5,000 take 100 looks."""


class Work:
    """Keys that wait to be looked at. Each is looked at by one task at a time, `at_once` of them together."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._dirty: dict[Key, None] = {}
        self._busy: set[Key] = set()
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._wake = asyncio.Event()

    def mark(self, key: Key) -> None:
        """Look at it as soon as possible."""
        self._dirty[key] = None
        self._wake.set()

    def later(self, key: Key, seconds: float) -> None:
        """Look at it after so many seconds, or sooner if that was said before."""
        loop, known = asyncio.get_running_loop(), self._timers.get(key)
        if known is not None:
            if known.when() <= loop.time() + seconds:
                return
            known.cancel()
        self._timers[key] = loop.call_later(seconds, self._due, key)

    async def next(self) -> list[Key]:
        """Wait until there is something to look at. `done` ends the look at each key."""
        while True:
            free = self._at_once - len(self._busy)
            found = list(islice((key for key in self._dirty if key not in self._busy), free))
            if found:
                break
            self._wake.clear()
            await self._wake.wait()
        for key in found:
            del self._dirty[key]
        self._busy.update(found)
        return found

    def done(self, key: Key) -> None:
        """The look at the key has ended."""
        self._busy.discard(key)
        self._wake.set()

    def _due(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.mark(key)


class Turns:
    """Goes round all `keys`, a few at a time, so that a change that was never heard of is found."""

    def __init__(self, keys: Callable[[], Iterable[Key]], clock: Callable[[], float] = time.monotonic) -> None:
        self._keys = keys
        self._clock = clock
        self._left: deque[Key] = deque()
        self._begun = clock()

    def next(self) -> list[Key]:
        """The keys of this look: `MOST_IN_TURN` at most, none if the round of `ROUND_SECONDS` has had all."""
        if not self._left and self._clock() >= self._begun + ROUND_SECONDS:
            self._left.extend(dict.fromkeys(self._keys()))
            self._begun = self._clock()
        return [self._left.popleft() for _ in range(min(MOST_IN_TURN, len(self._left)))]
