"""What a preemption costs this job, as it is measured: a save on leaving, and what it takes to train again."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Pauses:
    """Seconds that the newest `save` took, and from this process's start to its first step; None until known."""

    def __init__(self) -> None:
        self.save_seconds: float | None = None
        self.resume_seconds: float | None = None

    @contextmanager
    def saving(self) -> Iterator[None]:
        """The time of the block is the time of a save, unless it raises."""
        begun = time.monotonic()
        yield
        self.save_seconds = round(time.monotonic() - begun, 3)

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
