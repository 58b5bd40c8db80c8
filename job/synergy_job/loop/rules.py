"""How and when checkpoints are written, and the exit code that says one was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

EXIT_YIELDED = 75
"""Exit code of a worker that has saved a checkpoint and left (EX_TEMPFAIL of sysexits.h)."""


@dataclass(frozen=True)
class CheckpointRules:
    """How and when checkpoints are written. `every_rank`: `save` is called on all ranks, not on rank 0 alone."""

    save: Callable[[int], object] | None = None
    load: Callable[[], int | None] | None = None
    every_steps: int | None = None
    every_seconds: float | None = None
    every_rank: bool = False

    def __post_init__(self) -> None:
        """Raises `ValueError` naming the argument of `iterate` that makes no sense."""
        if (self.save is None) != (self.load is None):
            raise ValueError("give both save and load or neither: the one is of no use without the other")
        for name, function in (("save", self.save), ("load", self.load)):
            if function is not None and not callable(function):
                raise ValueError(f"{name} is {type(function).__name__}: it must be a function")
        periodic = {"checkpoint_every_steps": self.every_steps, "checkpoint_every_seconds": self.every_seconds}
        for name, value in periodic.items():
            if value is not None and value <= 0:
                raise ValueError(f"{name} is {value}: it must be greater than 0")
            if value is not None and self.save is None:
                raise ValueError(f"{name} needs save and load")

    def due(self, step: int, seconds_since_last: float) -> bool:
        """Whether `step` is due for a periodic checkpoint."""
        by_steps = self.every_steps is not None and step % self.every_steps == 0
        return by_steps or (self.every_seconds is not None and seconds_since_last >= self.every_seconds)
