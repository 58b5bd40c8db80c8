"""Reconciles of all jobs after a change that may concern any of them, such as another node."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from synergy_operator.views.metadata import Key

_SECONDS_EACH: Final = 0.003
"""Time of a pass for each job. A reconcile that changes nothing takes a tenth of it."""


class Passes:
    """Begins a pass at once, or a while after the last one: nodes that change all the time take a tenth of the
    processor at most."""

    def __init__(
        self, keys: Callable[[], Sequence[Key]], add: Callable[[Key], None], *, seconds_each: float = _SECONDS_EACH
    ) -> None:
        """`keys` are the jobs of a pass, `add` is called with each."""
        self._keys = keys
        self._add = add
        self._seconds_each = seconds_each
        self._next = 0.0
        self._waiting: asyncio.TimerHandle | None = None

    def ask(self) -> None:
        """A pass is due."""
        if self._waiting is None:
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_at(max(loop.time(), self._next), self._begin)

    def _begin(self) -> None:
        self._waiting = None
        keys = self._keys()
        self._next = asyncio.get_running_loop().time() + len(keys) * self._seconds_each
        for key in keys:
            self._add(key)
