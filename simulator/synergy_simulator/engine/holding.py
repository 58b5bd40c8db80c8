"""Which jobs hold GPUs, since when, and which of them ends next."""

import heapq
from collections.abc import Iterator
from math import inf

from synergy_core.model.snapshot import Allocation
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.outcome import Segment
from synergy_simulator.engine.rounds.clock import RoundClock
from synergy_simulator.engine.run import Run
from synergy_simulator.engine.usage import Usage


class Holding:
    """The jobs that hold GPUs. `running` is by name and must not be changed; `segments` are recorded if asked for."""

    def __init__(self, usage: Usage, options: Options, rounds: RoundClock) -> None:
        self.running: dict[str, Run] = {}
        self.segments: list[Segment] = []
        self._usage = usage
        self._options = options
        self._rounds = rounds
        self._ends: list[tuple[float, float, str]] = []
        """When an end is seen, when it is, and whose."""

    def next_end_s(self) -> float:
        """When the next end is seen if nothing changes; infinity while no job runs."""
        while self._ends and self._is_outdated(*self._ends[0][1:]):
            heapq.heappop(self._ends)
        return self._ends[0][0] if self._ends else inf

    def ended(self, now: float) -> Iterator[Run]:
        """The jobs whose ends are seen until `now`, in order. Each must leave before the next is requested."""
        while self._ends and self._ends[0][0] <= now:
            _, end, name = heapq.heappop(self._ends)
            run = self.running.get(name)
            if run is not None and run.ends_at == end:
                yield run

    def _is_outdated(self, end: float, name: str) -> bool:
        run = self.running.get(name)
        return run is None or run.ends_at != end

    def take_over(self, run: Run, allocation: Allocation, steps_per_s: float, now: float) -> None:
        """A job that has held this since before the simulation began."""
        self.running[run.task.name] = run
        run.segment_from = run.held_from = now
        self._usage.add(allocation, 1)
        run.resume(steps_per_s)
        self._await_end(run, now)

    def give(self, run: Run, allocation: Allocation, steps_per_s: float, now: float) -> None:
        """The job begins to run, moves, or is resized."""
        if run.job.running is not None:
            self._usage.add(run.job.running, -1)
        else:
            self.running[run.task.name] = run
            run.segment_from = now
            if run.steps_from == inf:
                run.steps_from = now + run.job.preemption_cost_s
            elif run.start_s is None and not run.profiling_s:
                run.steps_from = now + self._options.start_overhead_s
        if run.held_from is None:
            run.held_from = now
        self._usage.add(allocation, 1)
        run.hold(allocation, now, steps_per_s)
        self._await_end(run, now)

    def _await_end(self, run: Run, now: float) -> None:
        heapq.heappush(self._ends, (self._rounds.seen(run.ends_at, now), run.ends_at, run.task.name))

    def leave(self, run: Run, now: float) -> None:
        """The job gives back what it holds."""
        self._close_segment(run, now)
        if run.job.running is not None:
            self._usage.add(run.job.running, -1)
        run.leave(now)
        del self.running[run.task.name]

    def preempt(self, run: Run, now: float) -> None:
        """The job leaves because the plan wants it to, and pays for its next start."""
        self.leave(run, now)
        if run.held_from == now:
            run.held_from = None
        run.preemptions += 1
        run.steps_from = inf

    def stop_at(self, now: float) -> None:
        """The simulation ends: account for what still runs."""
        for run in self.running.values():
            run.advance(now)
            self._close_segment(run, now)

    def _close_segment(self, run: Run, now: float) -> None:
        if self._options.record and run.job.running is not None:
            self.segments += (
                Segment(run.task.name, worker.node, worker.gpus, run.segment_from, now)
                for worker in run.job.running.workers
            )
