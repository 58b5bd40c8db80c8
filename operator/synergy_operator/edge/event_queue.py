"""Events, posted beside other work: no action of a job waits for an event."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

_LOG = logging.getLogger(__name__)
_LANES: Final = 4
_MOST_WAITING: Final = 2500
"""Limit of each lane. A thousand jobs that start at once post some thousand events."""

_PATIENCE_SECONDS: Final = 5.0
"""How long an event waits for other work at most, unless many do."""
_PER_SECOND: Final = 20.0
"""Events posted per second, of all jobs together, while there is other work."""
_PER_SECOND_AT_REST: Final = 50.0
"""The same while there is none. A job that starts now has its writes made by the extender and by kubelets too: what has
gathered while thousands started would take the API server's time from it."""
_AT_ONCE_SECONDS: Final = 0.5
"""What so long brings may come at once."""

Post = Callable[[], Awaitable[None]]


class EventQueue:
    """Posts events later: once there is no other work (`idle`), or after a few seconds; some per second.

    Events of one subject are posted in the order in which they were added.
    """

    def __init__(
        self,
        idle: asyncio.Event,
        *,
        patience_s: float = _PATIENCE_SECONDS,
        per_second: float = _PER_SECOND,
        per_second_at_rest: float = _PER_SECOND_AT_REST,
    ) -> None:
        self._idle = idle
        self._patience_s = patience_s
        self._apart_s = 1.0 / per_second
        self._apart_at_rest_s = 1.0 / per_second_at_rest
        self._next_turn = 0.0
        self._lanes: list[asyncio.Queue[tuple[float, Post]]] = [asyncio.Queue(_MOST_WAITING) for _ in range(_LANES)]

    def add(self, subject: str, post: Post) -> None:
        """Add an event. If too many are waiting, it is logged and dropped, as any event may be."""
        try:
            self._lanes[hash(subject) % _LANES].put_nowait((asyncio.get_running_loop().time(), post))
        except asyncio.QueueFull:
            _LOG.warning("%s: an event is not posted, too many are waiting", subject)

    async def run(self) -> None:
        """Post events until cancelled."""
        async with asyncio.TaskGroup() as group:
            for lane in self._lanes:
                group.create_task(self._serve(lane))

    async def _serve(self, lane: "asyncio.Queue[tuple[float, Post]]") -> None:
        while True:
            added_at, post = await lane.get()
            await self._turn(added_at)
            try:
                await post()
            except Exception:  # noqa: BLE001 - one event's failure must never stop the others
                _LOG.exception("an event is not posted")

    async def _turn(self, added_at: float) -> None:
        """Wait until this event may be posted, beside other work or without."""
        now = asyncio.get_running_loop().time
        while True:
            idle = self._idle.is_set()
            turn = self._next_turn - _AT_ONCE_SECONDS if idle else max(added_at + self._patience_s, self._next_turn)
            if now() >= turn:
                self._next_turn = max(self._next_turn, now()) + (self._apart_at_rest_s if idle else self._apart_s)
                return
            if idle:
                await asyncio.sleep(turn - now())
                continue
            try:
                async with asyncio.timeout_at(turn):
                    await self._idle.wait()
            except TimeoutError:
                continue
