"""A map-style data set whose random numbers follow from the batch, not from what was drawn before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from synergy_job.torch.randomness import seed


class First:
    """The index of a batch's first sample, with the seed of the batch."""

    __slots__ = ("index", "seed")

    def __init__(self, index: Any, seed: int) -> None:
        self.index = index
        self.seed = seed


def batch_keys(indices: Any, number: int, *, single: bool) -> Any:
    """What the loader asks a `SeededDataset` for, from what the sampler said and the batch's seed.

    `indices` are those of a batch, or with `single` one index.
    """
    if single:
        return First(indices, number)
    listed = list(indices)
    return [First(listed[0], number), *listed[1:]] if listed else listed


class SeededDataset:
    """The samples of `inner`. Each batch begins with generators that are seeded by its own number.

    One process makes a whole batch, so its random numbers are the same whichever process that is, and however many
    there are.
    """

    def __init__(self, inner: Any) -> None:
        vars(self)["_inner"] = inner

    def __getitem__(self, key: Any) -> Any:
        """One sample."""
        return self._inner[_index(key)]

    def __len__(self) -> int:
        """Number of samples."""
        return len(self._inner)

    def __getattr__(self, name: str) -> Any:
        """Everything else is the data set's own, as code in a loader's process may expect."""
        if name.startswith("__") or name == "_inner":  # a copy or a pickle asks before `_inner` is there
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """As a `worker_init_fn` does, which opens a file for the data set of its process."""
        setattr(self._inner, name, value)


class SeededBatches(SeededDataset):
    """The same for a data set that makes a batch at once, by `__getitems__`."""

    def __getitems__(self, keys: Sequence[Any]) -> Any:
        """The samples of a batch."""
        return self._inner.__getitems__([_index(key) for key in keys])


def seeded(inner: Any) -> SeededDataset:
    """`inner` with seeded batches."""
    return SeededBatches(inner) if callable(getattr(inner, "__getitems__", None)) else SeededDataset(inner)


def _index(key: Any) -> Any:
    if isinstance(key, First):
        seed(key.seed)
        return key.index
    return key
