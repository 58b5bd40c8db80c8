"""When training ends: after steps, epochs or seconds, whichever the TrainingJob's spec gives, or when the script says
so."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from synergy_job.environment import Worker

PLANNED = ""
"""Why training ends if it is as long as its spec says."""


class Length:
    """The length of the job, and how much of it is done in time. `steps` is None until it is known."""

    def __init__(self, worker: Worker, clock: Callable[[], float] = time.monotonic) -> None:
        self._worker = worker
        self._clock = clock
        self._began: float | None = None
        self._finish: str | None = None
        self.steps: int | None = worker.steps
        self.epoch_steps: int | None = None

    def learn(self, epoch_steps: int) -> None:
        """An epoch has so many steps."""
        self.epoch_steps = epoch_steps
        if self._worker.epochs is not None:
            self.steps = self._worker.epochs * epoch_steps

    def begin(self) -> None:
        """The first step of this run begins."""
        self._began = self._clock()

    def finish(self, reason: str) -> None:
        """The script wants training to end after the running step. The first reason counts."""
        if self._finish is None:
            self._finish = reason

    def reached(self, step: int) -> bool:
        """True if `step` steps are all that the job has."""
        return self.steps is not None and step >= self.steps

    def end(self, step: int) -> str | None:
        """Why training ends after `step` steps: `PLANNED`, or the script's reason; None if it does not end."""
        if self._finish is not None:
            return self._finish
        return PLANNED if self.reached(step) or self.time_is_up else None

    @property
    def trained_seconds(self) -> float:
        """Seconds of training of all runs of the job."""
        return self._worker.trained_seconds + (0.0 if self._began is None else self._clock() - self._began)

    @property
    def time_is_up(self) -> bool:
        """Whether the job has trained for as long as it may. Rank 0's clock decides for all processes of a job."""
        limit = self._worker.max_run_seconds
        return limit is not None and self._worker.rank == 0 and self.trained_seconds >= limit

    def __str__(self) -> str:
        """The length in words, for the log."""
        if self._worker.max_run_seconds is not None:
            return f"{self._worker.max_run_seconds} s"
        return str(self.steps) if self.steps is not None else f"{self._worker.epochs} epochs"
