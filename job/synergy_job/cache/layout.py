"""The layout of the memory file of a MinIO cache.

Layout: a page with the header and the counts of the newest epochs, the index with one entry for each item of the data
set, then the items themselves, one behind the other in the order in which they came.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

PAGE = 4096
MAGIC = b"ksynMin1"
HEADER = struct.Struct("=8sQQQQQqQQQq")
ENTRY = struct.Struct("=QQ")
COUNTS = struct.Struct("=qQQ")
COUNTS_AT = 1024
PACE = struct.Struct("=d")
PACE_AT = 512
PICKLED = 1 << 63
NONE = (1 << 64) - 1

EPOCHS_KEPT = 64
"""Epochs whose hits and misses can be asked for."""


class CacheError(RuntimeError):
    """The cache cannot be had here; the message says what to change."""


class Item(NamedTuple):
    """What was put in: its bytes, and whether they are a pickle of it."""

    data: bytes
    pickled: bool


class EpochCounts(NamedTuple):
    """How often the cache had what was asked for in one epoch, over all processes."""

    epoch: int
    hits: int
    misses: int

    @property
    def hit_rate(self) -> float:
        """Hits as a fraction of what was asked for; 0 where nothing was."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0


class Header(NamedTuple):
    """`redo_*` is the entry that was added last (index -1: none), `cut` the budget that is being cut to."""

    magic: bytes
    items: int
    budget: int
    used: int
    kept: int
    generation: int
    redo_index: int
    redo_offset: int
    redo_length: int
    cut: int
    epoch: int


def counts_at(epoch: int) -> int:
    """Where the counts of an epoch are."""
    return COUNTS_AT + epoch % EPOCHS_KEPT * COUNTS.size
