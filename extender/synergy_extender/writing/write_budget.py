"""Writes that may be made by and by: so many a second."""

import time
from collections.abc import Callable
from typing import Final

_SAVED_S: Final = 5.0
"""Unused writes are saved up for so long, the longest time between two passes."""


class WriteBudget:
    """How many estimates may be written now: so many a second, saved up for a few seconds."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._clock = clock
        self._saved = per_second
        self._at = clock()

    @property
    def left(self) -> int:
        """Writes that may be made now."""
        now = self._clock()
        self._saved = min(self._per_second * _SAVED_S, self._saved + (now - self._at) * self._per_second)
        self._at = now
        return int(self._saved)

    def spend(self, writes: int) -> None:
        """So many are made."""
        self._saved -= writes
