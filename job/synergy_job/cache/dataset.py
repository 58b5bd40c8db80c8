"""A map-style data set read through a MinIO cache; PyTorch's `DataLoader` takes it as it is."""

from __future__ import annotations

import os
import pickle
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from synergy_job.cache.cache import Cache
from synergy_job.cache.layout import Item
from synergy_job.cache.profile_reads import WINDOW_BYTES, ProfileReads
from synergy_job.environment import Profile, read_environment, read_integer

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from synergy_job.cache.layout import EpochCounts

    class MapDataset(Protocol):
        """What has a length and items by index, such as `torch.utils.data.Dataset`."""

        def __len__(self) -> int:
            """Number of items."""

        def __getitem__(self, index: int) -> Any:
            """One item as storage has it."""


T = TypeVar("T")


class CachedDataset(Generic[T]):
    """`dataset` with its items kept in memory as far as there is room.

    `dataset[i]` is what comes from storage and is best left compressed, as the memory for the cache is calculated from
    `spec.dataset.bytes`: bytes are kept as they are, everything else pickled. `transform` makes the sample of it, each
    time anew: augmentation stays random. Make it before the loader's processes are started; they share it, whether
    forked or spawned, and those of later epochs find it filled.

    In a profile run each item counts as cached, or a fixed fraction of them where the operator measures how the job is
    with less memory; see `synergy_job.cache.profile_reads`.
    """

    def __init__(
        self,
        dataset: MapDataset,
        transform: Callable[[Any], T] | None = None,
        *,
        max_bytes: int | None = None,
        share: float = 1.0,
        name: str = "dataset",
    ) -> None:
        """`max_bytes`, `share`, `name` and errors as those of `Cache`; `transform` must be picklable where the loader's
        processes are spawned."""
        self._dataset = dataset
        self._fetch = _Fetch(dataset)
        self._transform = transform
        profiled = isinstance(read_environment(os.environ), Profile)
        size = (
            min(WINDOW_BYTES, read_integer(os.environ, "SYNERGY_CACHE_BYTES", WINDOW_BYTES)) if profiled else max_bytes
        )
        self.cache = Cache(len(dataset), max_bytes=size, share=share, name=name)
        self._reads = ProfileReads.of_environment(self.cache.store, self._fetch, os.environ) if profiled else None

    def __len__(self) -> int:
        """Number of items."""
        return len(self._dataset)

    def __getitem__(self, index: int) -> T:
        """One sample."""
        if not 0 <= index < len(self):
            raise IndexError(f"item {index} of a data set of {len(self)}")
        item = self._item(index) if self._reads is None else self._reads.item(index)
        content: Any = pickle.loads(item.data) if item.pickled else item.data  # noqa: S301 - the job's own memory
        return cast("T", content if self._transform is None else self._transform(content))

    def set_epoch(self, epoch: int) -> None:
        """Count hits and misses for this epoch; `iterate` calls it where the loader's `dataset` is this one."""
        self.cache.set_epoch(epoch)
        inner = getattr(self._dataset, "set_epoch", None)
        if inner is not None:
            inner(epoch)

    def counts(self, epoch: int | None = None) -> EpochCounts:
        """Hits and misses of all processes in an epoch, by default the running one."""
        return self.cache.counts(epoch)

    def _item(self, index: int) -> Item:
        kept = self.cache.store.get(index)
        if kept is not None:
            return kept
        fetched = self._fetch(index)
        self.cache.store.put(index, fetched)
        return fetched


class _Fetch:
    """Reads an item from storage."""

    def __init__(self, dataset: MapDataset) -> None:
        self._dataset = dataset

    def __call__(self, index: int) -> Item:
        value = self._dataset[index]
        if isinstance(value, bytes):
            return Item(value, pickled=False)
        return Item(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL), pickled=True)
