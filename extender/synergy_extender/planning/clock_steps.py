"""Steps of the wall clock."""

import time
from typing import Final

STEP_S: Final = 5.0
"""Between two passes the wall clock and the monotonic one drift apart by less, unless the wall clock is set."""


class ClockSteps:
    """Compares the wall clock with the monotonic clock."""

    def __init__(self) -> None:
        self._ahead_s: float | None = None

    def stepped(self, now: float) -> bool:
        """True if the wall clock, which shows `now`, was set since the last call."""
        before, self._ahead_s = self._ahead_s, now - time.monotonic()
        return before is not None and abs(self._ahead_s - before) > STEP_S
