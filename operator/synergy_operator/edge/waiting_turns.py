"""How often reasons for waiting are written: each is a write and an event, and a plan can change thousands at once."""

import time
from collections.abc import Callable
from typing import Final

from synergy_operator.actions import Action, PostEvent
from synergy_operator.job.waiting import WAITING
from synergy_operator.views.metadata import Key

PER_SECOND: Final = 20.0
"""Reasons written per second, of all jobs together."""
APART_SECONDS: Final = 60.0
"""Seconds between two reasons of one job."""


class WaitingTurns:
    """Decides when the changed reason of each waiting job is written. `clock` gives monotonic seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = clock()
        self._turns: dict[Key, float] = {}
        self._told: dict[Key, float] = {}

    def turn_in(self, key: Key, *, wanted: bool) -> float:
        """The seconds until the job's turn, 0 if it has come. A job that no longer wants its turn gives it back."""
        if not wanted:
            self._turns.pop(key, None)
            return 0.0
        now = self._clock()
        if key not in self._turns:
            free = max(now, self._next)
            self._next = free + 1.0 / PER_SECOND
            self._turns[key] = max(free, self._told.get(key, float("-inf")) + APART_SECONDS)
        return max(0.0, self._turns[key] - now)

    def carried_out(self, key: Key, actions: tuple[Action, ...]) -> None:
        """Note whether the actions write a reason for waiting of the job."""
        if any(isinstance(action, PostEvent) and action.reason in WAITING for action in actions):
            self._told[key] = self._clock()
            self._turns.pop(key, None)

    def forget(self, key: Key) -> None:
        """The job is gone."""
        self._turns.pop(key, None)
        self._told.pop(key, None)
