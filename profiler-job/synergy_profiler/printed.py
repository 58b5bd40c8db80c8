"""Training steps read from what a command prints: the last resort for scripts that do not use the library."""

from __future__ import annotations

import queue
import re
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from synergy_profiler.measurement import Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

_LINE_ENDS = re.compile(rb"[\r\n]+")
_LONGEST_LINE = 4096
LONGEST_SEARCH_S = 1.0
"""Of one line. Some expressions take longer than the universe has lasted, as (a+)+b does on eighty letters a."""
_DIGIT_SEPARATORS = str.maketrans("", "", ",_")


class PrintedSteps:
    """The steps in a command's output, in the order in which its lines came.

    A line is searched for `regex`. A match is one more step, unless its group `step` says how many are done; its group
    `speed` is the rate in steps per second. What a progress bar writes between two carriage returns is a line as well.

    Whatever thread hands lines over, they are searched in `next`, in the main thread: only there does a signal end a
    search that takes too long. It keeps all other threads from running.
    """

    how_to_be_seen = "spec.throughput.regex must match what the training script prints at each step"

    def __init__(self, regex: str) -> None:
        """Raises `re.error` if `regex` is no regular expression."""
        self._regex = re.compile(regex)
        self._lines: queue.Queue[tuple[str, float]] = queue.Queue()
        self._step = 0
        self.problem = ""
        """Why no more lines are searched; empty while they are."""
        self.unreadable = 0
        """Matches so far whose groups were no numbers."""

    def stream(self) -> Callable[[bytes], None]:
        """A function that takes the output of one stream as it comes."""
        rest = b""

        def take(data: bytes) -> None:
            nonlocal rest
            *lines, rest = _LINE_ENDS.split(rest + data)
            rest = rest[-_LONGEST_LINE:]
            for line in lines if not self.problem else ():
                self._lines.put((line[:_LONGEST_LINE].decode("utf-8", "replace"), time.monotonic()))

        return take

    def next(self, patience_s: float) -> Sample | None:
        """The next step; None when none has come for `patience_s` seconds. To be called in the main thread."""
        until = time.monotonic() + patience_s
        while True:
            try:
                line, at = self._lines.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                return None
            sample = None if self.problem else self._sample(line, at)
            if sample is not None:
                return sample

    def close(self) -> None:
        """Nothing is held open."""

    def _sample(self, line: str, at: float) -> Sample | None:
        try:
            with _at_most(LONGEST_SEARCH_S):
                match = self._regex.search(line)
        except _TooLongError:
            self.problem = (
                f"spec.throughput.regex takes more than {LONGEST_SEARCH_S:g} s for the line {line[:80]!r}: "
                "let no part of it that repeats contain another that does"
            )
            return None
        if match is None:
            return None
        found = match.groupdict()
        try:
            step = self._step + 1 if found.get("step") is None else int(_number(found["step"]))
            speed = None if found.get("speed") is None else _number(found["speed"])
        except ValueError:
            self.unreadable += 1
            return None
        self._step = step
        return Sample(step, at, speed)


class _TooLongError(Exception):
    """Raised where the block of `_at_most` is by then."""


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Ends the block with `_TooLongError` after so many seconds."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _number(text: str) -> float:
    """The number in `text`, such as 1200, 1,200 or 3.5e2. Raises `ValueError` if it is none, or not above zero."""
    value = float(text.translate(_DIGIT_SEPARATORS))
    if not 0 <= value < float("inf"):
        raise ValueError(text)
    return value
