"""Moments at which the caller looks at a simulation, and the jobs that it waits for."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from synergy_core.model.snapshot import Snapshot
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.present import Present
from synergy_simulator.engine.run import Run
from synergy_simulator.workloads.workload import Task

Progress = Callable[[int], None]
"""Called with the number of jobs that are done so far."""


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


class Awaited:
    """Counts finished jobs, and some that have started. The simulation is over when `left` is 0."""

    def __init__(self, tasks: Sequence[Task], options: Options, present: Present | None, progress: Progress) -> None:
        first, last = options.measure or (0, len(tasks))
        awaited = present.awaited if present is not None else tuple(task.name for task in tasks[first:last])
        self._awaited = frozenset(awaited) if present is not None or options.until_measured_done else None
        self._ends_left = len(tasks) if self._awaited is None else len(awaited)
        self._to_start = (
            [] if present is None else [run for run in present.runs if run.task.name in present.awaited_starts]
        )
        self._progress = progress
        self._done = 0

    @property
    def left(self) -> int:
        """The number of ends and starts that are still to come."""
        return self._ends_left + sum(run.held_from is None for run in self._to_start)

    def finish(self, name: str) -> None:
        """Count a finished job, and notify the caller."""
        self._done += 1
        if self._awaited is None or name in self._awaited:
            self._ends_left -= 1
        self._progress(self._done)
