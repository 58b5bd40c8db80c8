"""How a profile run reads its data: as if a given fraction of the data set were in the cache.

A profile run is a few dozen steps, far less than the epoch that fills a cache. CPU points must be measured with all
data in memory (Synergy, figure 4). Points that check the memory model need the hit rate that the cache would have. So
some items, spread over the data set, are read first; then each item that counts as cached is answered with one of
those, and each other one is fetched from storage, at most at the pace that is the pod's part of the node's.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from synergy_job.environment import ConfigError, read_integer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from synergy_job.cache.layout import Item
    from synergy_job.cache.store import Store

WINDOW_BYTES = 64 << 20
WINDOW_ITEMS = 256
"""Items that represent all cached ones: enough that their mean size and cost are those of the data set."""

_GOLDEN = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1


def counts_as_cached(index: int, hit_rate: float) -> bool:
    """Whether an item is among the fraction `hit_rate` of the data set, which is spread evenly over all indices."""
    return ((index * _GOLDEN) & _WORD) < hit_rate * (1 << 64)


class ProfileReads:
    """Reads of one data set in a profile run, over all processes that load it."""

    def __init__(self, store: Store, fetch: Callable[[int], Item], hit_rate: float, bytes_per_s: int) -> None:
        """`bytes_per_s` is the pace of fetches over all processes; 0 leaves them to storage."""
        self._store = store
        self._fetch = fetch
        self._hit_rate = hit_rate
        self._bytes_per_s = bytes_per_s
        items = store.items
        window = min(WINDOW_ITEMS, items)
        self._window = [number * items // window for number in range(window)]
        self._kept: list[int] = []
        self._filled_by = 0
        # another part of the data set in each run: what an earlier one read may still be in the kernel's page cache
        self._shift = int.from_bytes(os.urandom(8), "little") % items

    @classmethod
    def of_environment(cls, store: Store, fetch: Callable[[int], Item], environ: Mapping[str, str]) -> ProfileReads:
        """As the operator wrote it into the pod's environment; by default all items count as cached."""
        text = environ.get("SYNERGY_PROFILE_HIT_RATE") or "1"
        try:
            hit_rate = float(text)
        except ValueError:
            hit_rate = -1.0
        if not 0.0 <= hit_rate <= 1.0:
            raise ConfigError(f"SYNERGY_PROFILE_HIT_RATE is {text!r}: it must be a number from 0 to 1")
        return cls(store, fetch, hit_rate, read_integer(environ, "SYNERGY_STORAGE_BYTES_PER_S", 0))

    def item(self, index: int) -> Item:
        """The item, or one that represents it."""
        if counts_as_cached(index, self._hit_rate):
            self._fill()
            kept = self._store.peek(self._kept[index % len(self._kept)]) if self._kept else None
            return self._fetch(index) if kept is None else kept
        began = time.monotonic()
        fetched = self._fetch((index + self._shift) % self._store.items)
        if self._bytes_per_s:
            time.sleep(max(0.0, self._store.pace(began, len(fetched.data) / self._bytes_per_s) - time.monotonic()))
        return fetched

    def _fill(self) -> None:
        """Each process once: see that the items of the window are there; several fill it from different ends."""
        if self._filled_by == os.getpid():
            return
        self._filled_by = os.getpid()
        start = os.getpid() * 37 % len(self._window)
        for index in self._window[start:] + self._window[:start]:
            if self._store.peek(index) is None:
                self._store.put(index, self._fetch(index))
        self._kept = [index for index in self._window if self._store.peek(index) is not None]
