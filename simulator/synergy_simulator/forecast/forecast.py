"""Start and end of each job of a snapshot, with arrivals drawn from the past and without arrivals.

The planner of the cluster also plans the simulated future. A snapshot has the steps that are left, the speeds and the
policy. Future arrivals are unknown: each draw is one possible sequence of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from math import inf
from typing import Any, Final, Literal

from synergy_core.model.snapshot import PastJob, Snapshot
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.forecast.arrivals import DAY_S, Past, drawn, lasting_s, past_of
from synergy_simulator.forecast.present import Beginning, Unknown
from synergy_simulator.forecast.quantiles import Quantiles
from synergy_simulator.workloads.workload import Task, Workload

Times = dict[str, tuple[float, float]]
"""Next start and end by job; infinite: not within the horizon."""
_FINEST: Final = 512
_COARSEST: Final = 3
_JOBS: Final = 3000
"""Rounds of the usual length before rounds grow (`RoundClock`). More jobs get fewer of them, because their plans take
longer."""
_EXACT: Final = 250
"""With so many jobs at most, the future without arrivals has rounds of the usual length."""
_USUAL: Final = 4096
"""The number of these rounds, which are two weeks of 5 minutes. Then they grow too: within ten years there are a
million of them."""
_HORIZON_S: Final = 10 * 365 * DAY_S
"""What starts or ends later is not told."""
_LONGER: Final = 2.0
"""The horizon with arrivals, as a multiple of the time that the last job takes without arrivals. That of usual rounds,
if a job waits for ever, as a multiple of the time that all else takes with longer ones."""

_MOST_ARRIVALS: Final = 20_000
"""A draw ends with so many: after thousands of jobs in a minute, a past that goes on for a day would be millions."""

_STOPS: Final = 0.1
"""For each draw so many futures in which no further job comes: arrivals may stop, and no past tells when."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobForecast:
    """The forecast of one job. Times are on the snapshot's clock; None: not known, infinite: beyond the horizon."""

    job: str
    state: Literal["waiting", "running"]
    start: Quantiles
    finish: Quantiles
    start_without_arrivals_s: float
    finish_without_arrivals_s: float
    unknown: Unknown | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The forecast of a snapshot. `draws` is 0 if there is no past to draw from."""

    now: float
    draws: int
    arrivals: Literal["history", "none"]
    jobs: tuple[JobForecast, ...]

    def document(self, *, seconds: float) -> dict[str, Any]:
        """The JSON form; `seconds` is how long it took, measured by the caller."""
        return {
            "now": self.now,
            "draws": self.draws,
            "arrivals": self.arrivals,
            "jobs": [_document(job) for job in self.jobs],
            "seconds": seconds,
        }


class Forecaster:
    """Simulates the future of a snapshot, once for each draw."""

    def __init__(
        self,
        snapshot: Snapshot,
        options: Options,
        history: Sequence[PastJob] | None = None,
        *,
        horizon_s: float | None = None,
        starts_of: frozenset[str] = frozenset(),
    ) -> None:
        """`history` replaces the snapshot's. Simulations end at `horizon_s`, by default twice the time that the last
        job takes without arrivals, and at least a day. The start of the jobs in `starts_of` is forecast even if their
        end cannot be."""
        self._snapshot = snapshot
        self._options = replace(options, measure=None, until_measured_done=False, record=False)
        self._beginning = Beginning(snapshot, options, starts_of)
        self._horizon_s = horizon_s
        self._fine = max(_COARSEST, min(_FINEST, _JOBS // max(1, len(snapshot.jobs))))
        self._is_exact = len(snapshot.jobs) <= _EXACT
        rows = snapshot.history if history is None else history
        moved = 0.0 if history is None else snapshot.now - max((row.arrival_s for row in rows), default=snapshot.now)
        rows = [replace(row, arrival_s=row.arrival_s + moved) if moved < 0 else row for row in rows]
        self.past: Past = past_of(snapshot, self._beginning.tasks, rows)
        self._alone: Times | None = None
        self._delays: Times | None = None
        self.gpu_s = self._held_gpu_s = 0.0
        """GPU-seconds that the snapshot's jobs hold from now on, without arrivals."""

    @property
    def alone(self) -> Times:
        """The starts and ends without arrivals."""
        if self._alone is None:
            until = self._snapshot.now + (self._horizon_s or _HORIZON_S)
            self._alone = self._exactly(until) if self._is_exact else self._times((), until, self._fine)
            self.gpu_s = self._held_gpu_s
        return self._alone

    def _exactly(self, until_s: float) -> Times:
        """The times without arrivals in rounds of the usual length. Long ones tell until when these are worth it: a
        job that waits for ever must not be looked at every few minutes for ten years."""
        now, coarse, begins = self._snapshot.now, self._coarse, self._beginning
        last = max((moment for times in coarse.values() for moment in times if moment < inf), default=now)
        awaited = *(coarse[name][1] for name in begins.awaited), *(coarse[name][0] for name in begins.awaited_starts)
        if inf in awaited:
            until_s = min(until_s, now + _LONGER * (last - now))
        elif last <= min(until_s, now + (self._fine - 1) * self._options.round_s):
            return coarse  # no round was longer, nor seen by one that was
        return self._times((), until_s, _USUAL)

    @cached_property
    def _coarse(self) -> Times:
        """The times without arrivals in the rounds of draws."""
        return self._times((), self._snapshot.now + max(self._horizon_s or 0.0, _HORIZON_S), self._fine)

    @property
    def delays(self) -> Times:
        """By how many seconds start and end of each job are later with the longer rounds of draws; 0 where either time
        is beyond the horizon."""
        if self._delays is None:
            alone = self.alone
            coarse = self._coarse if self._is_exact else alone
            self._delays = {
                name: (_later(coarse[name][0], start), _later(coarse[name][1], end))
                for name, (start, end) in alone.items()
            }
        return self._delays

    def draw(self, seed: str) -> Times:
        """The times with one draw of arrivals, less the `delays`."""
        now, until = self._snapshot.now, self.until_s
        come_until = min(until, now + lasting_s(self.past, seed))
        rounds = self._beginning.rounds(self._fine)
        come = tuple(islice(drawn(self.past, now, come_until, seed, rounds.step_s), _MOST_ARRIVALS + 1))
        arrivals, rest = come[:_MOST_ARRIVALS], come[_MOST_ARRIVALS:]
        found = self._times(arrivals, min([until, *(task.arrival_s for task in rest)]), self._fine)
        delays = self.delays
        return {
            name: (max(now, start - delays[name][0]), max(now, end - delays[name][1]))
            for name, (start, end) in found.items()
        }

    @property
    def until_s(self) -> float:
        """The end of the horizon of the draws."""
        now = self._snapshot.now
        if self._horizon_s is not None:
            return now + self._horizon_s
        last = max((end for _, end in self.alone.values() if end < inf), default=now)
        return now + max(DAY_S, _LONGER * (last - now))

    def forecast(self, draws: int = 20, seed: int = 0, told: Callable[[int], None] = lambda _done: None) -> Forecast:
        """The whole forecast. `told` is called with the number of draws that are done."""
        alone = self.alone
        times: list[Times] = []
        if self.past.tasks:
            for index in range(draws):
                times.append(self.draw(f"{seed} {index}"))
                told(index + 1)
        return Forecast(
            now=self._snapshot.now,
            draws=len(times),
            arrivals="history" if times else "none",
            jobs=tuple(self._jobs(alone, [*times, *[alone] * round(_STOPS * len(times))] or [alone])),
        )

    def _jobs(self, alone: Times, times: Sequence[Times]) -> Iterator[JobForecast]:
        for job in sorted(self._snapshot.jobs, key=lambda one: one.name):
            start, finish = alone[job.name]
            yield JobForecast(
                job=job.name,
                state="waiting" if job.running is None else "running",
                start=Quantiles.of([one[job.name][0] for one in times]),
                finish=Quantiles.of([one[job.name][1] for one in times]),
                start_without_arrivals_s=start,
                finish_without_arrivals_s=finish,
                unknown=self._beginning.unknown.get(job.name),
            )

    def _times(self, arrivals: tuple[Task, ...], until_s: float, fine: int | None) -> Times:
        outcome = simulate(
            Workload(arrivals, self._beginning.cluster),
            self._options,
            present=self._beginning.present(fine=fine),
            until_s=until_s,
        )
        self._held_gpu_s = outcome.usage.gpu_s
        named = {job.name for job in self._snapshot.jobs}
        return {
            run.task.name: (
                inf if run.held_from is None else run.held_from,
                inf if run.finish_s is None else run.finish_s,
            )
            for run in outcome.runs
            if run.task.name in named
        }


def _later(coarse: float, exact: float) -> float:
    return coarse - exact if max(coarse, exact) < inf else 0.0


def _document(job: JobForecast) -> dict[str, Any]:
    return {
        "job": job.job,
        "state": job.state,
        "start_s": _quantiles(job.start),
        "finish_s": _quantiles(job.finish),
        "start_without_arrivals_s": _finite(job.start_without_arrivals_s),
        "finish_without_arrivals_s": _finite(job.finish_without_arrivals_s),
        "unknown": job.unknown,
    }


def _quantiles(one: Quantiles) -> dict[str, float | None]:
    return {"p10": _finite(one.p10), "p50": _finite(one.p50), "p90": _finite(one.p90)}


def _finite(value: float) -> float | None:
    return value if value < inf else None
