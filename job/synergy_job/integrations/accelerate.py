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

import synergy_job
from synergy_job.checkpoints.saved import Saved
from synergy_job.torch.loader import resumable
from synergy_job.torch.order import Order

__all__ = ["State", "state"]


def state(accelerator: Any, folder: str | os.PathLike[str]) -> State:
    """The state of a script, kept by `accelerator.save_state` in `folder`: all that was prepared or registered."""
    return State(accelerator, Saved(folder))


class State:
    """What Accelerate saves, and the place in the data. Made by `state`."""

    def __init__(self, accelerator: Any, saved: Saved) -> None:
        self._accelerator = accelerator
        self._saved = saved
        self._order = Order()

    def iterate(self, loader: Any, **options: Any) -> Iterator[Any]:
        """The batches to train on, as from `synergy_job.iterate`, whose other arguments `options` are.

        `loader` is a prepared one. In the middle of an epoch it begins where the checkpoint was written.
        """
        _seedable(loader)
        save_on = "all" if self._accelerator.num_processes > 1 else "first"
        given = {"save": self._save, "load": self._load, "save_on": save_on, **options}
        return synergy_job.iterate(resumable(loader, self._order), **given)

    def _save(self, step: int) -> None:
        name = f"step-{step}"
        self._accelerator.save_state(os.path.join(self._saved.folder, name))
        if self._accelerator.is_main_process:
            self._saved.record(step, name, order=self._order.state())

    def _load(self) -> int | None:
        newest = self._saved.newest()
        if newest is None:
            return None
        self._accelerator.load_state(self._saved.path(newest))
        self._order.restore(newest["order"])
        return int(newest["step"])


def _seedable(loader: Any) -> None:
    """Give Accelerate's sampler the generator that it makes for itself in its first epoch.

    The order of every epoch then follows from the library's seed, in a resumed process too.
    """
    sampler: Any = getattr(getattr(loader, "batch_sampler", None), "sampler", None)
    if getattr(sampler, "generator", sampler) is None:
        sampler.generator = torch.Generator()
