"""A PyTorch `DataLoader` that begins in the middle of an epoch without making the batches before it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import torch.utils.data

from synergy_job.torch.dataset import batch_keys, seeded
from synergy_job.torch.order import Order
from synergy_job.torch.randomness import mixed, preserved

_END = object()


class ResumableLoader:
    """The batches of a `DataLoader` over a map-style data set, as a `SeekableLoader`.

    The order of the samples, and the random numbers that making a batch takes, follow from the seed of `order`, the
    epoch and the batch's number. They do not depend on the number of loader processes or on where a run began. Making
    batches leaves the generators of this process as they were. Training thus draws the same numbers in any case.
    """

    def __init__(self, loader: Any, order: Order | None = None, *, inner: Sequence[Any] = ()) -> None:
        """`inner` are samplers that those of `loader` hide: they are seeded too."""
        self.dataset, self.sampler, self.batch_sampler = loader.dataset, loader.sampler, loader.batch_sampler
        self._order = Order() if order is None else order
        self._generator = loader.generator
        self._samplers = [*samplers_of(loader), *inner]
        self._keys = _Keys(len(loader))
        self._loader, sampling = _copied(loader)
        of_loader = vars(sampling)  # these attributes cannot be assigned after __init__
        of_loader["dataset"] = seeded(loader.dataset)
        of_loader["sampler" if self.batch_sampler is None else "batch_sampler"] = self._keys

    def __len__(self) -> int:
        """Batches in an epoch."""
        return len(self._keys)

    def iter_from(self, epoch: int, first: int) -> Iterator[Any]:
        """The batches of `epoch` (0, 1, ...) from number `first` on."""
        if callable(getattr(self._loader, "set_epoch", None)):  # as Accelerate's, which counts epochs from 0 itself
            self._loader.set_epoch(epoch)
        with preserved():
            drawn = self._order.draw(lambda: self._sampled(epoch), epoch)
            self._keys.keys = [
                batch_keys(indices, self._order.of_batch(epoch, number), single=self.batch_sampler is None)
                for number, indices in enumerate(drawn[first:], start=first)
            ]
            batches = iter(self._loader)
        here = self._loader.num_workers == 0  # else another process's generators are used
        while True:
            with preserved() if here else nullcontext():
                batch = next(batches, _END)
            if batch is _END:
                return
            yield batch

    def _sampled(self, epoch: int) -> list[Any]:
        generators = [self._generator, *(getattr(one, "generator", None) for one in self._samplers)]
        for generator in generators:
            if isinstance(generator, torch.Generator):
                generator.manual_seed(mixed(self._order.seed, epoch))
        for one in self._samplers:
            if hasattr(one, "set_epoch"):
                one.set_epoch(epoch)
        return list(self.sampler if self.batch_sampler is None else self.batch_sampler)


def resumable(loader: Any, order: Order) -> Any:
    """`loader` as a `ResumableLoader`. What is no `DataLoader` over a map-style data set of known length is returned as
    it is."""
    if not isinstance(loader, torch.utils.data.DataLoader):
        return loader
    if isinstance(loader.dataset, torch.utils.data.IterableDataset):
        return loader
    try:
        len(loader)
    except TypeError:
        return loader
    return ResumableLoader(loader, order)


def samplers_of(loader: Any) -> list[Any]:
    """The samplers of a `DataLoader`, and those within them: a framework may wrap them to give a rank its part."""
    found: list[Any] = []
    waiting = [loader.batch_sampler, loader.sampler]
    while waiting:
        one = waiting.pop(0)
        if one is not None and not any(one is other for other in found):
            found.append(one)
            waiting += [getattr(one, "batch_sampler", None), getattr(one, "sampler", None)]
    return found


def _copied(loader: Any) -> tuple[Any, Any]:
    """A copy, which keeps all settings, those of a subclass too; and the loader in it that takes the samples."""
    inner = vars(loader).get("base_dataloader")
    if inner is None:
        made = copy.copy(loader)
        return made, made
    # a wrapper that passes for the loader within, as Accelerate's since 0.34: `copy` would take it for that one
    made = object.__new__(type(loader))
    vars(made).update(vars(loader), base_dataloader=copy.copy(inner))
    return made, made.base_dataloader


class _Keys:
    """In the place of the sampler: the batches of the running epoch."""

    def __init__(self, length: int) -> None:
        self.keys: list[Any] = []
        self._length = length

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys)

    def __len__(self) -> int:
        return self._length
