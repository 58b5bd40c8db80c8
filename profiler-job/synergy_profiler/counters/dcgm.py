"""DCGM's profiling fields, from the dcgm-exporter of the node while a command is measured.

A field is an average over the exporter's collection interval, and stays what it is until the next collection. What is
read at a moment therefore tells of up to two intervals before it.
"""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Final

from synergy_profiler.counters.exposition import DRAM_ACTIVE, SM_ACTIVE, loads
from synergy_profiler.counters.load import GpuLoad, Load, mean_load

if TYPE_CHECKING:
    from collections.abc import Mapping

_PATIENCE_S = 2.0
_MOST_BYTES = 8 << 20
_MOST_POLL_S = 1.0


class DcgmError(Exception):
    """The exporter tells nothing of these GPUs; the message says why."""


def scrape(url: str) -> Mapping[str, Load]:
    """What the exporter tells now, by UUID. Raises DcgmError."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a node's address is behind no proxy
    try:
        with opener.open(url, timeout=_PATIENCE_S) as answer:
            return loads(answer.read(_MOST_BYTES).decode("utf-8", "replace"))
    except (OSError, ValueError, urllib.error.URLError) as error:
        raise DcgmError(f"dcgm-exporter at {url} does not answer: {error}") from error


class DcgmSampler:
    """Reads the exporter until `stop`. Raises DcgmError where it tells nothing of the GPUs `own`."""

    source: Final = "DCGM"

    def __init__(self, url: str, interval_s: float, own: frozenset[str]) -> None:
        if not own:
            raise DcgmError("which GPUs of the node are the container's is not known")
        told = scrape(url)
        if not own & set(told):
            raise DcgmError(
                f"dcgm-exporter at {url} has no {SM_ACTIVE} and {DRAM_ACTIVE} of these GPUs: enable both fields in "
                "its collectors, and let the address be that of the node's own exporter"
            )
        self._url, self._own, self._interval_s = url, own, interval_s
        self._samples: list[GpuLoad] = []
        self._ended = threading.Event()
        self._reader = threading.Thread(target=self._read, name="synergy-dcgm", daemon=True)
        self._reader.start()

    @property
    def settle_s(self) -> float:
        """How long a command must train before what is read tells of nothing else."""
        return 2 * self._interval_s

    @property
    def problem(self) -> str:
        """Why nothing is known, if nothing is."""
        return f"measured for less than two collection intervals of dcgm-exporter ({self._interval_s:g} s each)"

    def load(self, begin: float, end: float) -> Load | None:
        """The load from `begin` to `end` (CLOCK_MONOTONIC, seconds); None if no reading tells of that time alone."""
        return mean_load([one.load for one in list(self._samples) if begin + self.settle_s <= one.at <= end])

    def stop(self) -> None:
        """End the reading; what was read stays."""
        self._ended.set()
        self._reader.join(_PATIENCE_S + 1)

    def _read(self) -> None:
        while not self._ended.wait(min(_MOST_POLL_S, self._interval_s)):
            try:
                told = scrape(self._url)
            except DcgmError:
                continue  # one that misses a reading has the others
            now = time.monotonic()
            self._samples += [GpuLoad(now, uuid, told[uuid]) for uuid in sorted(self._own & set(told))]
