"""When this worker must leave: requested by the lease or by SIGTERM, checked between two steps."""

from __future__ import annotations

import time
from collections.abc import Callable


class Departure:
    """The earliest moment at which anyone has asked this worker to leave.

    Requests come from the lease thread and from a signal handler. So nothing here may wait for a lock: appending to a
    list and reading it are single steps of the interpreter.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._moments: list[float] = []

    def request(self, in_s: float = 0.0) -> None:
        """Ask to leave after the step that runs in `in_s` seconds; the earliest of several requests counts."""
        self._moments.append(self._clock() + in_s)

    @property
    def requested(self) -> bool:
        """Whether anyone has asked, for now or for later."""
        return bool(self._moments)

    def due(self, lead_s: float = 0.0) -> bool:
        """Whether the moment is here, or will be within `lead_s` seconds."""
        return bool(self._moments) and self._clock() + lead_s >= min(self._moments)
