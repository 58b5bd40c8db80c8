"""Training steps read from what a command prints: the last resort for scripts that do not use the library."""

from __future__ import annotations

import queue
import re
import threading
import time
from typing import TYPE_CHECKING

from synergy_profiler.measurement import Sample

if TYPE_CHECKING:
    from collections.abc import Callable


_LINE_ENDS = re.compile(rb"[\r\n]+")
_LONGEST_LINE = 4096
_DIGIT_SEPARATORS = str.maketrans("", "", ",_")


class PrintedSteps:
    """The steps in a command's output, in the order in which its lines came.

    A line is searched for `regex`. A match is one more step, unless its group `step` says how many are done; its group
    `speed` is the rate in steps per second. What a progress bar writes between two carriage returns is a line as well.
    """

    how_to_be_seen = "spec.throughput.regex must match what the training script prints at each step"

    def __init__(self, regex: str) -> None:
        """Raises `re.error` if `regex` is no regular expression."""
        self._regex = re.compile(regex)
        self._lock = threading.Lock()
        self._samples: queue.Queue[Sample] = queue.Queue()
        self._step = 0
        self.unreadable = 0
        """Matches so far whose groups were no numbers."""

    def stream(self) -> Callable[[bytes], None]:
        """A function that takes the output of one stream as it comes."""
        rest = b""

        def take(data: bytes) -> None:
            nonlocal rest
            *lines, rest = _LINE_ENDS.split(rest + data)
            rest = rest[-_LONGEST_LINE:]
            for line in lines:
                self._take(line[:_LONGEST_LINE].decode("utf-8", "replace"), time.monotonic())

        return take

    def next(self, patience_s: float) -> Sample | None:
        """The next step; None when none has come for `patience_s` seconds."""
        try:
            return self._samples.get(timeout=patience_s)
        except queue.Empty:
            return None

    def close(self) -> None:
        """Nothing is held open."""

    def _take(self, line: str, at: float) -> None:
        match = self._regex.search(line)
        if match is None:
            return
        found = match.groupdict()
        with self._lock:
            try:
                step = self._step + 1 if found.get("step") is None else int(_number(found["step"]))
                speed = None if found.get("speed") is None else _number(found["speed"])
            except ValueError:
                self.unreadable += 1
                return
            self._step = step
            self._samples.put(Sample(step, at, speed))


def _number(text: str) -> float:
    """The number in `text`, such as 1200, 1,200 or 3.5e2. Raises `ValueError` if it is none, or not above zero."""
    value = float(text.translate(_DIGIT_SEPARATORS))
    if not 0 <= value < float("inf"):
        raise ValueError(text)
    return value
