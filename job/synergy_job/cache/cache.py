"""The MinIO cache of a job's data set: of fixed size, nothing is ever evicted, shared by all who load data.

A page cache, or any cache that evicts, loses what a shuffled epoch asks for next; a cache that keeps what came first
has the same number of hits in every epoch, the cached fraction of the data set. That is what the memory axis of a job's
sensitivity matrix is computed from (Synergy, section 3.1; "Analyzing and mitigating data stalls", MinIO).
"""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any

from synergy_job.cache.budget import PodMemory
from synergy_job.cache.layout import CacheError, EpochCounts, Item
from synergy_job.cache.store import Store
from synergy_job.environment import read_integer

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Cache", "CacheError", "EpochCounts", "cached_bytes", "follow_memory"]


class Cache:
    """Bytes by the index of the item in its data set, in memory that forked and spawned processes share.

    What was put in first stays. An item that does not fit into what is left is not kept. Any process may end at any
    moment: the others, and those that come later, find the cache whole. The memory is the job's until its last process
    has ended.
    """

    def __init__(self, items: int, *, max_bytes: int | None = None, share: float = 1.0, name: str = "dataset") -> None:
        """A cache for a data set of `items` items (the index takes 16 bytes of memory for each).

        In a TrainingJob it takes `share` of what the plan gives the pod beyond the job's own working set, and follows
        when that memory is changed in place; several caches share it by their `name` and a `share` each. `max_bytes`
        sets a size of one's own; without a plan, as outside a cluster, it is 0: nothing is kept.

        Raises `ValueError` for arguments that make no sense, `CacheError` where the system has no memory files or the
        first process of the pod makes no such cache.
        """
        if items < 1:
            raise ValueError(f"items is {items}: it must be at least 1")
        if max_bytes is not None and max_bytes < 0:
            raise ValueError(f"max_bytes is {max_bytes}: it must be at least 0")
        if not 0 < share <= 1:
            raise ValueError(f"share is {share}: it must be above 0, at most 1")
        self._items = items
        self._own = max_bytes
        self._share = share
        self._memory = PodMemory(os.environ)
        if max_bytes is None and self._memory.budget():
            _check_beside(share)
        self._leads = read_integer(os.environ, "LOCAL_RANK", 0) == 0
        self.name = name
        self._store = self._make_store()
        if self._store.items != items:
            raise CacheError(f"cache {name!r} has {self._store.items} items on local rank 0 and {items} here")
        _open.append(weakref.ref(self, _open.remove))

    def get(self, index: int) -> bytes | None:
        """The item's bytes, None where it is not kept. Counts as a hit or a miss. Raises `IndexError`."""
        item = self._store.get(self._checked(index))
        return None if item is None else item.data

    def put(self, index: int, data: bytes) -> bool:
        """Keep the item if there is room; whether it was kept. What is kept already stays. Raises `IndexError`."""
        return self._store.put(self._checked(index), Item(data, pickled=False))

    def set_epoch(self, epoch: int) -> None:
        """Count from now on for this epoch, and take up what resizes have changed. `iterate` calls it through
        `CachedDataset`."""
        self._store.set_epoch(epoch)
        self.follow()

    def counts(self, epoch: int | None = None) -> EpochCounts:
        """Hits and misses of all processes in an epoch (the newest 64 are kept), by default the running one."""
        return self._store.counts(epoch)

    def follow(self, told_bytes: int | None = None) -> None:
        """Take the size that follows from the pod's memory now; `told_bytes` is that memory in the plan."""
        if self._own is None and self._leads:
            self._store.resize(self._budget(told_bytes))

    @property
    def max_bytes(self) -> int:
        """What the items may take."""
        return self._store.budget

    @property
    def used_bytes(self) -> int:
        """What the items take."""
        return self._store.used

    def __len__(self) -> int:
        """Items that are kept."""
        return self._store.count

    @property
    def store(self) -> Store:
        """The memory itself."""
        return self._store

    def _make_store(self) -> Store:
        if read_integer(os.environ, "LOCAL_WORLD_SIZE", 1) == 1:
            return Store(self._items, self._budget())
        from synergy_job.cache.handover import pods_store  # noqa: PLC0415 - it loads network code

        return pods_store(self.name, lambda: Store(self._items, self._budget()), os.environ)

    def _budget(self, told_bytes: int | None = None) -> int:
        return self._own if self._own is not None else int(self._memory.budget(told_bytes) * self._share)

    def _checked(self, index: int) -> int:
        if not 0 <= index < self._items:
            raise IndexError(f"item {index} of a data set of {self._items}")
        return index

    def __getstate__(self) -> Mapping[str, Any]:
        # a loader's process neither resizes nor needs to know why
        return {"_items": self._items, "_own": 0, "_leads": False, "name": self.name, "_store": self._store}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)


_open: list[weakref.ref[Cache]] = []
"""Caches that were made in this process; the lease's thread reads it too."""


def _caches() -> list[Cache]:
    return [cache for reference in list(_open) if (cache := reference()) is not None]


def _check_beside(share: float) -> None:
    """Raises `ValueError` where the caches of this process would share more than there is."""
    taken = sum(cache._share for cache in _caches() if cache._own is None)
    if share + taken > 1.0 + 1e-9:
        raise ValueError(f"share is {share} but other caches have {taken:g} already: the shares must not exceed 1")


def follow_memory(told_bytes: int) -> None:
    """The plan gives this pod so much memory now."""
    for cache in _caches():
        cache.follow(told_bytes)


def cached_bytes() -> int | None:
    """What the items of this process's caches take; None where it has no cache."""
    caches = _caches()
    return sum(cache.used_bytes for cache in caches) if caches else None
