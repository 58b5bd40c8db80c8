"""Moments at which the caller looks at a simulation."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from synergy_core.model.snapshot import Snapshot
from synergy_simulator.engine.run import Run


@dataclass(frozen=True, slots=True)
class Stops:
    """Moments at which the caller looks at a simulation, ascending."""

    moments: tuple[float, ...]
    look: Callable[[float, Snapshot, Sequence[Run]], None]
    """Called with the moment, the cluster before that moment's plan, and all jobs that have arrived."""


class PendingStops:
    """The stops that are still to come."""

    def __init__(self, stops: Stops | None) -> None:
        self._left = list(reversed(stops.moments)) if stops is not None else []
        self._look = stops.look if stops is not None else None

    def before(self, moment: float) -> Iterator[float]:
        """Take those before `moment`, one by one."""
        while self._left and self._left[-1] < moment:
            yield self._left.pop()

    def until(self, moment: float) -> Iterator[float]:
        """Take those until `moment` inclusive, one by one."""
        while self._left and self._left[-1] <= moment:
            yield self._left.pop()

    def look(self, stop: float, snapshot: Snapshot, runs: Sequence[Run]) -> None:
        """Let the caller look."""
        if self._look is not None:
            self._look(stop, snapshot, runs)
