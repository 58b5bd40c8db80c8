"""Events posted beside the work: no action of a job waits for what is only told."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

_LOG = logging.getLogger(__name__)
_LANES: Final = 4
_MOST_WAITING: Final = 2500
"""In each lane; a thousand jobs that begin at once tell some thousand things."""

Post = Callable[[], Awaitable[None]]


class EventDesk:
    """Calls what it was given, later. What concerns one subject is posted in the order in which it was told."""

    def __init__(self) -> None:
        self._lanes: list[asyncio.Queue[Post]] = [asyncio.Queue(_MOST_WAITING) for _ in range(_LANES)]

    def tell(self, subject: str, post: Post) -> None:
        """Have it posted. Where too many wait already it is logged and lost, as every event may be."""
        try:
            self._lanes[hash(subject) % _LANES].put_nowait(post)
        except asyncio.QueueFull:
            _LOG.warning("%s: an event is not posted, too many are waiting", subject)

    async def run(self) -> None:
        """Post until cancelled."""
        async with asyncio.TaskGroup() as group:
            for lane in self._lanes:
                group.create_task(_serve(lane))


async def _serve(lane: "asyncio.Queue[Post]") -> None:
    while True:
        post = await lane.get()
        try:
            await post()
        except Exception:  # noqa: BLE001 - one event's failure must never stop the others
            _LOG.exception("an event is not posted")
