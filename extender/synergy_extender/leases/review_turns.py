"""The order in which the API server reviews tokens.

Anybody can send tokens that look like a worker's, as many as they like, each another. So questions wait in lanes that
have slots of their own, one address can only ask so often, and one pod's name gets one question at a time.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from enum import StrEnum
from types import MappingProxyType
from typing import Final
from weakref import WeakValueDictionary

WAIT_SECONDS: Final = 4.0
"""How long a question waits for its turn: the library gives up on its report after 5 s."""
PEER_RATE: Final = 20.0
PEER_BURST: Final = 100.0
"""Questions a second, and at once, on behalf of one address. A proxy may hide many workers behind one; each of them
needs one question when it starts and one for each new token."""
UNKNOWN_RATE: Final = 5.0
UNKNOWN_BURST: Final = 20.0
"""The same for all tokens together whose pods this replica does not know."""
_PEERS_MOST: Final = 4096


class BusyError(Exception):
    """The question cannot be asked now. Nothing is said about the token: try again."""


class Lane(StrEnum):
    """What is known of a token before the API server reviews it."""

    RENEWAL = "renewal"
    """The API server accepted this very token a while ago."""
    WORKER = "worker"
    """It names a worker pod that this replica knows."""
    UNKNOWN = "unknown"
    """It names a pod that this replica does not know: one that has just started, that is gone, or that is made up."""
    PERSON = "person"
    """It came to an endpoint for people, where a token may be anything."""


SLOTS: Final[Mapping[Lane, int]] = MappingProxyType({Lane.RENEWAL: 4, Lane.WORKER: 6, Lane.UNKNOWN: 2, Lane.PERSON: 4})


class Bucket:
    """Lets `burst` pass at once and `rate` a second from then on."""

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._at = burst, now

    def take(self, now: float) -> bool:
        """Whether one more may pass now."""
        self._left = min(self._burst, self._left + max(0.0, now - self._at) * self._rate)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class PeerBuckets:
    """A bucket for each address; the addresses that have asked last are remembered."""

    def __init__(self, rate: float, burst: float, most: int = _PEERS_MOST) -> None:
        self._rate, self._burst, self._most = rate, burst, most
        self._of: OrderedDict[str, Bucket] = OrderedDict()

    def __len__(self) -> int:
        return len(self._of)

    def take(self, peer: str, now: float) -> bool:
        """Whether this address may ask once more now."""
        bucket = self._of.pop(peer, None) or Bucket(self._rate, self._burst, now)
        self._of[peer] = bucket
        if len(self._of) > self._most:
            self._of.popitem(last=False)
        return bucket.take(now)


class ReviewTurns:
    """Gives turns. `clock` gives seconds that never go back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._slots = {lane: asyncio.Semaphore(count) for lane, count in SLOTS.items()}
        self._peers = PeerBuckets(PEER_RATE, PEER_BURST)
        self._unknown = Bucket(UNKNOWN_RATE, UNKNOWN_BURST, clock())
        self._of_pod: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._waiting: set[tuple[str, str]] = set()

    @asynccontextmanager
    async def turn(self, lane: Lane, peer: str, pod_uid: str = "") -> AsyncIterator[None]:
        """Wait for the turn and hold it meanwhile. Raises BusyError where there is none to be had soon.

        A token that was accepted before waits for such tokens alone. Of all others about one pod only one is in review
        at a time, and an address has only one waiting: a flood of tokens that name a pod comes before that pod's worker
        only once for each of its addresses.
        """
        if lane is Lane.RENEWAL:
            async with self._slot(lane, asyncio.Lock()):
                yield
            return
        about = (peer, pod_uid)
        if pod_uid and about in self._waiting:
            raise BusyError("another token of this address for the same pod is being reviewed")
        if not self._peers.take(peer, self._clock()):
            raise BusyError("too many new tokens came from this address")
        if lane is Lane.UNKNOWN and not self._unknown.take(self._clock()):
            raise BusyError("too many tokens came of pods that this replica does not know")
        self._waiting.add(about)
        try:
            lock = self._of_pod.setdefault(pod_uid, asyncio.Lock()) if pod_uid else asyncio.Lock()
            async with self._slot(lane, lock):
                yield
        finally:
            self._waiting.discard(about)

    @asynccontextmanager
    async def _slot(self, lane: Lane, lock: asyncio.Lock) -> AsyncIterator[None]:
        slot = self._slots[lane]
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await lock.acquire()
                try:
                    await slot.acquire()
                except BaseException:
                    lock.release()
                    raise
        except TimeoutError:
            raise BusyError("too many tokens wait to be reviewed") from None
        try:
            yield
        finally:
            slot.release()
            lock.release()
