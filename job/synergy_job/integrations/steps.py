"""`iterate` turned inside out: the framework makes the steps, and asks before each whether it may begin."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from itertools import repeat
from typing import Any

import synergy_job
from synergy_job.loop.script import abandon


class Steps:
    """The steps of a job whose batches come from the framework.

    `save`, `load` and `options` are those of `synergy_job.iterate`. `epoch_steps` are the steps of an epoch, None if
    the framework does not know them.
    """

    def __init__(
        self, *, save: Callable[[int], object], load: Callable[[], int | None], epoch_steps: int | None, **options: Any
    ) -> None:
        loader: Any = _OfEpoch(epoch_steps) if epoch_steps else lambda _: repeat(None)
        self._steps = synergy_job.iterate(loader, save=save, load=load, steps=sys.maxsize, **options)
        self._open = True
        self._pause = ExitStack()

    def next(self) -> bool:
        """The running step, if there is one, is done. True if another one may begin, False if training is over.

        Raises `SystemExit(75)` when the job must leave, after a checkpoint.
        """
        if not self._open:
            return False
        try:
            next(self._steps)
        except StopIteration:
            self._open = False
        return self._open

    def end(self, reason: str, *, begun: bool) -> None:
        """The framework ends training by itself. `begun`: the step that was granted last has been made."""
        self.resume()
        if not self._open:
            return
        # a gang may grant a step more before all of it ends: nobody makes that one
        if not begun or self.next():
            abandon(reason)
            self.next()
        self._steps.close()  # type: ignore[attr-defined]
        self._open = False

    def pause(self, pause: Callable[[], AbstractContextManager[None]]) -> None:
        """A pause begins, unless one lasts already."""
        if self._open and not self._paused:
            self._pause.enter_context(pause())
            self._paused = True

    def resume(self) -> None:
        """The pause is over."""
        self._pause.close()
        self._paused = False

    _paused = False


class _OfEpoch:
    """A loader of the right length, whose batches nobody looks at."""

    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length

    def iter_from(self, epoch: int, first: int) -> Iterator[None]:
        """As many batches as are left of the epoch."""
        return repeat(None, self._length - first)


def check_processes(seen: int, how: str) -> None:
    """Raises ValueError where the framework sees fewer processes than the job has: each would train on all of the data,
    and their gradients would not meet. `how` tells what to give the framework."""
    processes = int(os.environ.get("WORLD_SIZE") or 1)
    if seen < processes:
        raise ValueError(f"the job has {processes} processes, but the framework trains with {seen}: {how}")


def finite(values: Any, names: dict[str, str]) -> dict[str, float]:
    """The values that `names` renames, those that are numbers."""
    return {told: float(values[name]) for name, told in names.items() if name in values}
