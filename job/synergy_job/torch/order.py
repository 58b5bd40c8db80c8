"""The order of a run's batches: what each epoch's shuffle follows from."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

from synergy_job.torch.randomness import mixed, seed
from synergy_job.torch.together import Together


class Order:
    """The seed of all shuffling, and the state of a sampler that keeps one of its own.

    An epoch's shuffle follows from the seed and the epoch's number. For a sampler with `state_dict` it also follows
    from its state where the epoch begins. That state is kept for the checkpoint.

    Where ranks train on parts of one shuffle, `share` gives all of them the seed of rank 0.
    """

    def __init__(self, sampler: Any = None) -> None:
        self.seed = int(torch.initial_seed())
        self._sampler = sampler
        self.part = 0
        """Which part of each epoch this process trains on: its batches get random numbers of their own."""
        self._next_epoch = 0
        self._begun: dict[str, Any] = {"epoch": 0, "sampler": self._sampler_state()}

    def share(self, together: Together) -> None:
        """Shuffle as rank 0 does. All ranks call it together."""
        self.seed = together.from_first(lambda: self.seed)

    def of_batch(self, epoch: int, number: int) -> int:
        """The seed of the random numbers that making a batch takes."""
        return mixed(self.seed, epoch, number, *([self.part] if self.part else []))

    def state(self) -> dict[str, Any]:
        """What `restore` needs."""
        return {"seed": self.seed, **self._begun}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on with the order of the process that returned `state`."""
        self.seed = state["seed"]
        self._begun = {"epoch": state["epoch"], "sampler": state["sampler"]}
        self._next_epoch = state["epoch"]
        if self._sampler is not None and state["sampler"] is not None:
            self._sampler.load_state_dict(copy.deepcopy(state["sampler"]))

    def draw(self, sampled: Callable[[], list[Any]], epoch: int) -> list[Any]:
        """What `sampled` returns for `epoch`. It changes the generators of the process."""
        if self._sampler is not None:
            while self._next_epoch < epoch:
                self._draw_next(sampled)
            self._begun = {"epoch": epoch, "sampler": self._sampler_state()}
        self._next_epoch = epoch
        return self._draw_next(sampled)

    def _draw_next(self, sampled: Callable[[], list[Any]]) -> list[Any]:
        seed(mixed(self.seed, self._next_epoch))
        self._next_epoch += 1
        return sampled()

    def _sampler_state(self) -> Any:
        return None if self._sampler is None else copy.deepcopy(self._sampler.state_dict())
