"""Progress of a long command, one line per step with the time it took."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[str], None]


def silent(_text: str) -> None:
    """Report nothing."""


class Steps:
    """Reports each step when it ends, with its duration and the time since the start in seconds."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._start = time.monotonic()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time one step; a step that fails is reported by the error alone."""
        begin = time.monotonic()
        yield
        now = time.monotonic()
        self.report(f"{name:<46} {now - begin:5.1f} s  ({now - self._start:.1f} s)")

    def elapsed_s(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self._start
