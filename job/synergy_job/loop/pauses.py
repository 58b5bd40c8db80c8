"""Time without training, as it is measured: evaluations, saves, and what it takes to train again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Pauses:
    """Time in which the loop's body does not train.

    Seconds that the newest `save` took, and from this process's start to its first step; None until known.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._depth = 0
        self._state: tuple[float, float | None] = 0.0, None
        """Seconds of the pauses that are over, and since when the open one lasts: read by other threads as one."""
        self.save_seconds: float | None = None
        self.resume_seconds: float | None = None

    def seconds(self, now: float) -> float:
        """Seconds of all pauses until `now`."""
        over, since = self._state
        return over if since is None else over + max(0.0, now - since)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """The time of the block is a pause; one within another counts once."""
        self._depth += 1
        if self._depth == 1:
            self._state = self._state[0], self._clock()
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._state = self.seconds(self._clock()), None

    @contextmanager
    def saving(self) -> Iterator[None]:
        """The time of the block is the time of a save, unless it raises."""
        begun = self._clock()
        with self.pause():
            yield
        self.save_seconds = round(self._clock() - begun, 3)

    def resumed(self) -> None:
        """The next step is about to begin: imports are done, the checkpoint is loaded, the gang is there."""
        seconds = seconds_since_start()
        self.resume_seconds = None if seconds is None else round(seconds, 3)


def seconds_since_start(proc: str = "/proc") -> float | None:
    """Age of this process; None if the system does not say."""
    try:
        with open(f"{proc}/self/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()  # the name before it may have blanks and brackets
        with open(f"{proc}/uptime", encoding="utf-8") as file:
            uptime = float(file.read().split()[0])
        return max(0.0, uptime - int(fields[19]) / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError):
        return None
