"""Items of a made-up data set, and what a loader's process does with them: importable by spawned processes."""

import hashlib
import multiprocessing
import os
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from synergy_job.cache.dataset import CachedDataset
from synergy_job.cache.layout import Item
from synergy_job.cache.store import Store


def content(index: int, size: int = 1000) -> bytes:
    """Bytes that no other item has."""
    return hashlib.shake_128(index.to_bytes(4, "big")).digest(size)


def size_of(index: int) -> int:
    """Between 900 and 1100, 1000 in the mean."""
    return 900 + index * 7919 % 201


def read_all(store: Store, indices: list[int]) -> None:
    """What a loader's process does in an epoch."""
    for index in indices:
        item = store.get(index)
        if item is None:
            store.put(index, Item(content(index, size_of(index)), pickled=False))
        elif item.data != content(index, size_of(index)):
            os._exit(3)


class Files:
    """A data set of `items` items, 100 bytes for each digit of their number; `fetched` counts what was read here."""

    def __init__(self, items: int, fetched: Counter[int]) -> None:
        self._items = items
        self._fetched = fetched

    def __len__(self) -> int:
        return self._items

    def __getitem__(self, index: int) -> object:
        if index >= self._items:
            raise IndexError(index)
        self._fetched[index] += 1
        return str(index).encode() * 100


def double(item: bytes) -> bytes:
    """A transformation that spawned processes can import."""
    return item * 2


class Loader:
    """As PyTorch's `DataLoader` does it: new processes for each epoch make the batches of `dataset` in turn."""

    def __init__(self, dataset: CachedDataset[bytes], method: str, workers: int, batch: int) -> None:
        self.dataset = dataset
        self._context = multiprocessing.get_context(method)
        self._workers = workers
        self._batch = batch

    def __len__(self) -> int:
        return len(self.dataset) // self._batch

    def __iter__(self) -> Iterator[list[bytes]]:
        order = random.sample(range(len(self.dataset)), len(self.dataset))
        with ProcessPoolExecutor(self._workers, self._context, _take, (self.dataset,)) as pool:
            batches = [order[k * self._batch : (k + 1) * self._batch] for k in range(len(self))]
            yield from pool.map(_samples, batches)


_taken: list[CachedDataset[bytes]] = []


def _take(dataset: CachedDataset[bytes]) -> None:
    _taken[:] = [dataset]


def _samples(indices: list[int]) -> list[bytes]:
    return [_taken[0][index] for index in indices]
