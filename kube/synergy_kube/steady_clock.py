"""Wall-clock time that does not follow a step of the system's clock at once."""

import logging
import time
from collections.abc import Callable
from typing import Final

_LOG = logging.getLogger(__name__)
TOLERANCE_S: Final = 2.0
"""A smaller difference is drift, which is followed at once."""
PATIENCE_S: Final = 30.0
"""How long a step is distrusted. A clock that was set wrong by mistake is often set right again within that time."""


class SteadyClock:
    """Unix time in seconds, carried forward by the monotonic clock.

    A step of the wall clock by more than `TOLERANCE_S`, either way, is adopted once it has lasted for `PATIENCE_S`;
    `steps` counts those. Until then time goes on from where it was. Call it often: it sees a step only when asked.
    """

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._offset_s = wall() - monotonic()
        self._distrusted_s = 0.0
        self._since: float | None = None
        self.steps = 0

    def __call__(self) -> float:
        """Unix time in seconds."""
        now, wall = self._monotonic(), self._wall()
        stepped_s = wall - (self._offset_s + now)
        if abs(stepped_s) <= TOLERANCE_S:
            self._offset_s, self._since = wall - now, None
            return wall
        if self._since is None or abs(stepped_s - self._distrusted_s) > TOLERANCE_S:
            self._since, self._distrusted_s = now, stepped_s
            _LOG.warning(
                "the system's clock stepped by %+.0f s; it is followed if that lasts for %.0f s", stepped_s, PATIENCE_S
            )
        if now - self._since < PATIENCE_S:
            return self._offset_s + now
        _LOG.warning("the system's clock is followed from now on, %+.0f s from where it was", stepped_s)
        self._offset_s, self._since = wall - now, None
        self.steps += 1
        return wall
