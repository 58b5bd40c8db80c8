"""The order of reviews at the API server.

Anyone can send any number of different tokens. So tokens that were accepted before have slots of their own, and the
number of new tokens from one address is limited.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

WAIT_SECONDS: Final = 4.0
"""How long a question waits for its turn."""
PEER_RATE: Final = 5.0
PEER_BURST: Final = 50.0
"""New tokens of one address, per second and in a burst. All users of an ingress have the same address."""
_PEERS_MOST: Final = 4096
_SLOTS: Final = 4


class BusyError(Exception):
    """The review cannot be made now. The token may be valid: try again."""


class _Bucket:
    def __init__(self, now: float) -> None:
        self._left, self._at = PEER_BURST, now

    def take(self, now: float) -> bool:
        self._left = min(PEER_BURST, self._left + max(0.0, now - self._at) * PEER_RATE)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class Turns:
    """Gives turns. `clock` gives seconds that never go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known = asyncio.Semaphore(_SLOTS)
        self._new = asyncio.Semaphore(_SLOTS)
        self._peers: OrderedDict[str, _Bucket] = OrderedDict()

    @asynccontextmanager
    async def known(self) -> AsyncIterator[None]:
        """A turn for a review of a user whose token was accepted before. Raises BusyError if none comes soon."""
        async with _slot(self._known):
            yield

    @asynccontextmanager
    async def new(self, peer: str) -> AsyncIterator[None]:
        """A turn for a token that was not accepted before, from this address. Raises BusyError."""
        bucket = self._peers.pop(peer, None) or _Bucket(self._clock())
        self._peers[peer] = bucket
        if len(self._peers) > _PEERS_MOST:
            self._peers.popitem(last=False)
        if not bucket.take(self._clock()):
            raise BusyError("too many new tokens came from this address")
        async with _slot(self._new):
            yield


@asynccontextmanager
async def _slot(slots: asyncio.Semaphore) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            await slots.acquire()
    except TimeoutError:
        raise BusyError("too many questions wait to be asked") from None
    try:
        yield
    finally:
        slots.release()
