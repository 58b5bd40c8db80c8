"""The memory behind a MinIO cache: one anonymous file in memory (`layout`) that several processes read and fill.

Any process may be killed at any moment. Changes are made under a lock that the kernel takes back from a process that
dies, and an item counts once the header says so: bytes copied before that are overwritten by the next item. The header
names the entry that it makes valid and the cut that is under way. The next process finishes what a killed one has
begun. Items are copied out without the lock: an entry is read again under it before the copy is trusted.
"""

from __future__ import annotations

import fcntl
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from synergy_job.cache.layout import (
    COUNTS,
    ENTRY,
    HEADER,
    MAGIC,
    NONE,
    PACE,
    PACE_AT,
    PAGE,
    PICKLED,
    CacheError,
    EpochCounts,
    Header,
    Item,
    counts_at,
)

_ENTRIES_AT_ONCE = 1 << 16


class Store:
    """The items of one data set, by index. Made once, then inherited by forked processes or pickled to spawned ones."""

    def __init__(self, items: int, budget: int) -> None:
        """Raises `CacheError` where the system has no memory files."""
        if not hasattr(os, "memfd_create"):
            raise CacheError("the cache needs Linux (memfd_create): read the data set itself here")
        self._fd = os.memfd_create("kube-synergy-cache")
        self._set_up(items)
        os.ftruncate(self._fd, self._data)
        self._write_header(Header(MAGIC, items, budget, 0, 0, 0, -1, 0, 0, NONE, 0))

    @classmethod
    def adopt(cls, fd: int) -> Store:
        """The store of another process, by a descriptor of its file, which now is this object's."""
        store = cls.__new__(cls)
        store._fd = fd
        header = store._header()
        if header.magic != MAGIC:
            raise CacheError("what another process handed over is no cache of this version of synergy_job")
        store._set_up(header.items)
        return store

    def _set_up(self, items: int) -> None:
        self._data = PAGE + -(-items * ENTRY.size // PAGE) * PAGE
        self._threads = threading.Lock()
        self._lock_fd: int | None = None
        _stores.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        from multiprocessing import reduction  # noqa: PLC0415 - it loads network code, which nothing else needs here

        return _adopt_from, (reduction.DupFd(self._fd),)

    def __del__(self) -> None:
        for fd in (self.__dict__.pop("_fd", None), self.__dict__.pop("_lock_fd", None)):
            if fd is not None:
                os.close(fd)

    def fileno(self) -> int:
        """The descriptor of the memory file."""
        return self._fd

    # items

    def get(self, index: int) -> Item | None:
        """The item, None where it is not there; counts as a hit or a miss of the running epoch."""
        generation = self._header().generation
        entry = self._entry(index)
        offset, length = entry
        data = os.pread(self._fd, length & ~PICKLED, self._data + offset - 1) if offset else None
        with self._locked() as header:
            if data is not None and (header.generation != generation or self._entry(index) != entry):
                data = None  # it was cut off meanwhile, or was just being put in
            if data is None and header.redo_index == index:
                self._finish_put(header)
            self._count(header.epoch, hit=data is not None)
        return None if data is None else Item(data, bool(length & PICKLED))

    def peek(self, index: int) -> Item | None:
        """As `get`, and counts as nothing. Of a store that is never cut."""
        offset, length = self._entry(index)
        if not offset:
            return None
        return Item(os.pread(self._fd, length & ~PICKLED, self._data + offset - 1), bool(length & PICKLED))

    def put(self, index: int, item: Item) -> bool:
        """Keep the item if it is not there and there is room for it; whether it was kept."""
        size = len(item.data)
        hint = self._header()
        if size > hint.budget - hint.used:  # most often so, once the cache is full: no lock for that
            return False
        with self._locked() as header:
            self._finish_put(header)
            if size > header.budget - header.used or self._entry(index)[0]:
                return False
            try:
                self._write(item.data, self._data + header.used)
            except OSError:  # no memory left, whatever the budget says
                return False
            length = size | (PICKLED if item.pickled else 0)
            new = header._replace(
                used=header.used + size,
                kept=header.kept + 1,
                redo_index=index,
                redo_offset=header.used + 1,
                redo_length=length,
            )
            self._write_header(new)
            self._write_entry(index, new.redo_offset, length)
        return True

    def resize(self, budget: int) -> None:
        """Another budget. Where it is smaller than what is kept, the items that came last go, and their memory too."""
        with self._locked() as header:
            if budget == header.budget:
                return
            self._finish_put(header)
            if budget >= header.used:
                self._write_header(header._replace(budget=budget))
            else:
                marked = header._replace(cut=budget)
                self._write_header(marked)
                self._finish_cut(marked)

    @property
    def items(self) -> int:
        """Items of the data set."""
        return self._header().items

    @property
    def budget(self) -> int:
        """Bytes that items may take."""
        return self._header().budget

    @property
    def used(self) -> int:
        """Bytes of the items that are kept."""
        return self._header().used

    @property
    def count(self) -> int:
        """Items that are kept."""
        return self._header().kept

    # epochs

    def set_epoch(self, epoch: int) -> None:
        """Reads from now on belong to `epoch`."""
        with self._locked() as header:
            if header.epoch != epoch:
                self._write_header(header._replace(epoch=epoch))

    def counts(self, epoch: int | None = None) -> EpochCounts:
        """Hits and misses of an epoch, by default of the running one; none where it is longer ago than is kept."""
        with self._locked() as header:
            wanted = header.epoch if epoch is None else epoch
            found = EpochCounts._make(COUNTS.unpack(os.pread(self._fd, COUNTS.size, counts_at(wanted))))
        return found if found.epoch == wanted else EpochCounts(wanted, 0, 0)

    def pace(self, began: float, seconds: float) -> float:
        """When something ends that began at `began` and takes `seconds`, one after the other over all processes.
        Moments are those of the machine's monotonic clock."""
        with self._locked():
            (free_from,) = PACE.unpack(os.pread(self._fd, PACE.size, PACE_AT))
            end = max(began, free_from) + seconds
            self._write(PACE.pack(end), PACE_AT)
        return float(end)

    def _count(self, epoch: int, hit: bool) -> None:
        at = counts_at(epoch)
        kept, hits, misses = COUNTS.unpack(os.pread(self._fd, COUNTS.size, at))
        if kept != epoch:
            hits = misses = 0
        self._write(COUNTS.pack(epoch, hits + hit, misses + (not hit)), at)

    # what is under the lock

    @contextmanager
    def _locked(self) -> Iterator[Header]:
        """The header, for as long as no other thread or process changes anything."""
        with self._threads:
            if self._lock_fd is None:
                # a lock belongs to an opening of the file, and a forked child shares its parent's
                self._lock_fd = os.open(f"/proc/self/fd/{self._fd}", os.O_RDWR | os.O_CLOEXEC)
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX)
            try:
                header = self._header()
                yield header if header.cut == NONE else self._finish_cut(header)
            finally:
                fcntl.flock(self._lock_fd, fcntl.LOCK_UN)

    def _finish_put(self, header: Header) -> None:
        """Make the entry of the last item valid, if who put it in was killed before that."""
        if header.redo_index >= 0:
            self._write_entry(header.redo_index, header.redo_offset, header.redo_length)

    def _finish_cut(self, header: Header) -> Header:
        """Drop the items that end above `header.cut`; may be done again from the beginning at any moment."""
        used = kept = 0
        for first in range(0, header.items, _ENTRIES_AT_ONCE):
            at = PAGE + first * ENTRY.size
            size = min(_ENTRIES_AT_ONCE, header.items - first) * ENTRY.size
            chunk = bytearray(os.pread(self._fd, size, at))
            dropped = False
            for number, (offset, length) in enumerate(ENTRY.iter_unpack(bytes(chunk))):
                end = offset - 1 + (length & ~PICKLED)
                if offset and end > header.cut:
                    ENTRY.pack_into(chunk, number * ENTRY.size, 0, 0)
                    dropped = True
                elif offset:
                    used, kept = max(used, end), kept + 1
            if dropped:
                self._write(bytes(chunk), at)
        after = header._replace(
            budget=header.cut, used=used, kept=kept, generation=header.generation + 1, redo_index=-1, cut=NONE
        )
        os.ftruncate(self._fd, self._data + used)
        self._write_header(after)
        return after

    def _header(self) -> Header:
        return Header._make(HEADER.unpack(os.pread(self._fd, HEADER.size, 0)))

    def _write_header(self, header: Header) -> None:
        self._write(HEADER.pack(*header), 0)

    def _entry(self, index: int) -> tuple[int, int]:
        """Where the item is, counted from 1, and its length; (0, 0) where it is not there."""
        offset, length = ENTRY.unpack(os.pread(self._fd, ENTRY.size, PAGE + index * ENTRY.size))
        return offset, length

    def _write_entry(self, index: int, offset: int, length: int) -> None:
        self._write(ENTRY.pack(offset, length), PAGE + index * ENTRY.size)

    def _write(self, data: bytes, at: int) -> None:
        written = os.pwrite(self._fd, data, at)
        while written < len(data):
            written += os.pwrite(self._fd, memoryview(data)[written:], at + written)


_stores: weakref.WeakSet[Store] = weakref.WeakSet()


def _adopt_from(handed: Any) -> Store:
    return Store.adopt(handed.detach())


def _in_child() -> None:
    """A forked child opens the file anew for its own lock; the parent's lock must not live on in it."""
    for store in list(_stores):
        fd, store._lock_fd, store._threads = store._lock_fd, None, threading.Lock()
        if fd is not None:
            os.close(fd)


os.register_at_fork(after_in_child=_in_child)
