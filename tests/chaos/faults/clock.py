"""The wall clock of one process under test, which can be set by libfaketime. The monotonic clock stays as it is."""

from collections.abc import Mapping
from pathlib import Path

_PLACES = ("/usr/lib/*-linux-gnu/faketime/libfaketimeMT.so.1", "/usr/lib64/faketime/libfaketimeMT.so.1")


class WallClock:
    """Right until it is stepped. `file` is its own; the process reads it at every look at the clock."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.offset_s = 0
        self.step(0)

    @property
    def environment(self) -> Mapping[str, str]:
        """What the process has to be started with."""
        return {
            "LD_PRELOAD": str(library()),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
            # Else libfaketime changes the deadlines of waits on the monotonic clock, so that threads that wait for
            # Python's interpreter lock do not sleep: two busy threads take 15 times as long.
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",
        }

    def step(self, offset_s: int) -> None:
        """From now on the process's wall clock is so many seconds ahead of the true time."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{offset_s:+d}\n")
        new.replace(self._file)  # a look at the clock meanwhile finds one or the other
        self.offset_s = offset_s


def library() -> Path:
    """Where libfaketime is.

    Raises FileNotFoundError, which says how to get it.
    """
    for pattern in _PLACES:
        for found in Path("/").glob(pattern.removeprefix("/")):
            return found
    raise FileNotFoundError("libfaketime is not here: apt-get install --no-install-recommends libfaketime")
