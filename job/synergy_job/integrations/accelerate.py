"""Scripts with Accelerate in a TrainingJob.

    from synergy_job.integrations.accelerate import state

    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in state(accelerator, "/checkpoints").iterate(loader):
        ...

The folder must be on a volume that outlives the pod.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import torch
from accelerate.data_loader import DataLoaderDispatcher, SeedableRandomSampler

import synergy_job
from synergy_job.checkpoints.saved import Saved
from synergy_job.integrations.steps import check_processes
from synergy_job.torch.loader import resumable, samplers_of
from synergy_job.torch.order import Order
from synergy_job.torch.together import Together

__all__ = ["State", "state"]

_HOW_TO_SEE_ALL = (
    "give Accelerator the backend, as in kwargs_handlers=[InitProcessGroupKwargs(backend='nccl')], or 'gloo' on CPUs"
)


def state(accelerator: Any, folder: str | os.PathLike[str]) -> State:
    """The state of a script, kept by `accelerator.save_state` in `folder`: all that was prepared or registered."""
    return State(accelerator, Saved(folder))


class State:
    """What Accelerate saves, and the place in the data. Made by `state`."""

    def __init__(self, accelerator: Any, saved: Saved) -> None:
        self._accelerator = accelerator
        self._saved = saved
        self._order = Order()
        self._together = Together()
        self._all_save = True
        self._samplers: list[Any] = []

    def iterate(self, loader: Any, **options: Any) -> Iterator[Any]:
        """The batches to train on, as from `synergy_job.iterate`, whose other arguments `options` are.

        `loader` is a prepared one. In the middle of an epoch it begins where the checkpoint was written. Several
        processes share one shuffle, so all of them call this.

        Raises `ValueError` for a loader that cannot begin there, or whose epochs have more batches in some processes,
        and where Accelerate does not see all processes of the job.
        """
        check_processes(self._accelerator.num_processes, _HOW_TO_SEE_ALL)
        save_on = "all" if self._accelerator.num_processes > 1 else "first"
        given = {"save": self._save, "load": self._load, "save_on": save_on, **options}
        self._all_save = given["save_on"] == "all"
        made = resumable(loader, self._order)
        if made is not loader:
            _check_dispatch(loader)
            self._samplers = samplers_of(loader)
            self._order.share(self._together)
            self._seed_samplers()
            self._order.part = self._accelerator.process_index
            _check_lengths(self._together.gathered(len(loader)))
        return synergy_job.iterate(made, **given)

    def _save(self, step: int) -> None:
        if not self._all_save:
            self._record(step, self._write(step, self._saved.begin(step)))
            return
        together = self._together
        name = together.from_first(lambda: self._saved.begin(step))
        together.each(lambda: self._write(step, name))  # it counts once every process has written its files
        together.from_first(lambda: self._record(step, name))

    def _write(self, step: int, name: str) -> str:
        self._accelerator.save_state(os.path.join(self._saved.folder, name))
        return name

    def _record(self, step: int, name: str) -> None:
        self._saved.record(step, name, order=self._order.state())

    def _load(self) -> int | None:
        newest = self._together.from_first(self._saved.newest)
        if newest is None:
            return None
        self._together.each(lambda: self._accelerator.load_state(self._saved.path(newest)))
        self._order.restore(newest["order"])
        self._seed_samplers()
        return int(newest["step"])

    def _seed_samplers(self) -> None:
        """Give Accelerate's sampler what it makes for itself: a generator in its first epoch, or a seed.

        The order of every epoch then follows from the library's seed, in other processes and resumed ones too.
        """
        for sampler in self._samplers:
            if getattr(sampler, "generator", sampler) is None:
                sampler.generator = torch.Generator()
            if isinstance(sampler, SeedableRandomSampler) and hasattr(sampler, "initial_seed"):  # newer than 0.29
                sampler.initial_seed = self._order.seed


def _check_dispatch(loader: Any) -> None:
    if isinstance(loader, DataLoaderDispatcher):
        raise ValueError(
            "dispatch_batches=True reads all batches in one process, which cannot begin in the middle of an epoch of a "
            "map-style data set: leave it out, so each process reads its own batches"
        )


def _check_lengths(lengths: list[int]) -> None:
    """Steps are counted alike in all processes, and the last ones of a longer epoch would wait for the others."""
    if len({*lengths}) > 1:
        raise ValueError(
            f"an epoch has {min(lengths)} batches in some processes and {max(lengths)} in others: leave "
            "even_batches=False out, or give the loader drop_last=True"
        )
