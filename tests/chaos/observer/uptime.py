"""How long the operator has been able to work: promises with a time limit count that time only."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

_TICK_SECONDS = 0.2
_LONGEST_TICK_SECONDS = 0.5


class Uptime:
    """Seconds during which `works()` held. A stall of this very machine counts little."""

    def __init__(self, works: Callable[[], bool]) -> None:
        self.seconds = 0.0
        self._works = works

    @asynccontextmanager
    async def counting(self) -> AsyncIterator[None]:
        """Count meanwhile."""
        task = asyncio.create_task(self._count())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _count(self) -> None:
        at = time.monotonic()
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            now = time.monotonic()
            if self._works():
                self.seconds += min(now - at, _LONGEST_TICK_SECONDS)
            at = now
