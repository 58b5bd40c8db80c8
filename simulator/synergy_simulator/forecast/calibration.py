"""The errors of forecasts: a simulation is forecast from several of its moments and compared with its own future."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import inf
from statistics import median
from typing import Any, Final

from synergy_core.collector import collector_paused
from synergy_core.model.snapshot import Snapshot
from synergy_simulator.engine.options import Options
from synergy_simulator.engine.simulation import simulate
from synergy_simulator.forecast.forecast import Forecaster, JobForecast
from synergy_simulator.forecast.present import Beginning
from synergy_simulator.forecast.taken import snapshots_at
from synergy_simulator.own_policies import known_policy, same_source, source_of
from synergy_simulator.runners.processes import Processes
from synergy_simulator.runners.runner import Runner
from synergy_simulator.workloads.workload import Workload

HORIZONS_S: Final = (3_600.0, 14_400.0, 86_400.0, inf)
_SLACK_S: Final = 1.0
"""A forecast with a smaller error counts as right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How often the true time was between the 10th and the 90th percentile."""

    intervals: int
    inside: int
    below: int
    above: int
    points: int
    """Intervals of length 0, where all draws agree. The other numbers do not include them."""
    points_right: int

    @property
    def part(self) -> float | None:
        """The fraction of intervals that contain the true time; None without intervals."""
        return self.inside / self.intervals if self.intervals else None

    @property
    def part_of_all(self) -> float | None:
        """The same, including the intervals of length 0."""
        whole = self.intervals + self.points
        return (self.inside + self.points_right) / whole if whole else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ByHorizon:
    """Waiting jobs whose true start is within this horizon in seconds, and not within the previous one."""

    horizon_s: float
    jobs: int
    median_error_s: float
    """Absolute error of the median start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The comparison over all moments."""

    moments: int
    start: Coverage
    finish: Coverage
    by_horizon: tuple[ByHorizon, ...]

    def document(self, *, seconds: float) -> dict[str, Any]:
        """The JSON form; `seconds` is how long it took, measured by the caller."""
        return {
            "moments": self.moments,
            **{
                name: {**asdict(one), "part": one.part, "part_of_all": one.part_of_all}
                for name, one in (("start", self.start), ("finish", self.finish))
            },
            "by_horizon": [
                {**asdict(one), "horizon_s": None if one.horizon_s == inf else one.horizon_s} for one in self.by_horizon
            ],
            "seconds": seconds,
        }


Truth = tuple[JobForecast, float, float]
"""A forecast, and the true start and end of the job; infinite: none within the simulation."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment of a simulation, to be forecast."""

    label: str
    snapshot: Snapshot
    workload: Workload
    """Of the whole simulation."""
    options: Options
    draws: int
    seed: int
    source: str
    """Of a policy that is not the project's own (`own_policies.source_of`)."""


@dataclass(frozen=True, slots=True)
class Foretold:
    """The forecasts of a moment that are known, each with the job's true next start."""

    now: float
    jobs: tuple[tuple[JobForecast, float], ...]


def foretell(moment: Moment) -> Foretold:
    """Forecast one moment, in whichever process."""
    same_source(known_policy(moment.options.plan.policy), moment.source)
    with collector_paused():
        starts = _starts(moment.snapshot, moment.workload, moment.options)
        forecast = Forecaster(moment.snapshot, moment.options).forecast(moment.draws, moment.seed)
    known = [one for one in forecast.jobs if not one.unknown]
    return Foretold(moment.snapshot.now, tuple((one, starts[one.job]) for one in known))


def calibrate(
    workload: Workload,
    options: Options,
    *,
    moments: int = 20,
    draws: int = 20,
    seed: int = 0,
    runner: Runner | None = None,
    told: Callable[[int], None] = lambda _done: None,
) -> Calibration:
    """Forecast a simulation from `moments` moments, evenly between the first third of its arrivals and the last one.

    `runner` is where the forecasts are made, by default on all cores of this machine. `told` is called with the number
    of those that are done.
    """
    snapshots, ends = _simulated(workload, options, moments)
    source = source_of(known_policy(options.plan.policy))
    asked = [
        Moment(f"moment {number}", one, workload, options, draws, seed, source)
        for number, one in enumerate(snapshots, start=1)
    ]
    done = 0

    def tell(_index: int, _found: Foretold) -> None:
        nonlocal done
        done += 1
        told(done)

    found = (runner or Processes()).run(foretell, asked, tell)
    truths = [(one.now, (job, start, ends[job.job])) for one in found for job, start in one.jobs]
    return Calibration(
        moments=len(snapshots),
        start=_coverage([(one.start.p10, one.start.p90, start) for _, (one, start, _) in truths]),
        finish=_coverage([(one.finish.p10, one.finish.p90, end) for _, (one, _, end) in truths]),
        by_horizon=tuple(_by_horizon(truths)),
    )


def _simulated(workload: Workload, options: Options, moments: int) -> tuple[list[Snapshot], dict[str, float]]:
    """The snapshots, and the end of each job."""
    first, last = workload.tasks[0].arrival_s, workload.tasks[-1].arrival_s
    step = (last - first) * 2 / 3 / moments
    at = [first + (last - first) / 3 + step * index for index in range(moments)]
    snapshots: list[Snapshot] = []
    with collector_paused():
        outcome = simulate(workload, options, stops=snapshots_at(at, options, lambda _at, one: snapshots.append(one)))
    return snapshots, {run.task.name: inf if run.finish_s is None else run.finish_s for run in outcome.runs}


def _starts(snapshot: Snapshot, workload: Workload, options: Options) -> dict[str, float]:
    """The true next start and end of each job of the snapshot, from the rest of the simulation with its true
    arrivals."""
    beginning = Beginning(snapshot, options)
    rest = tuple(task for task in workload.tasks if task.arrival_s > snapshot.now)
    outcome = simulate(Workload(rest, beginning.cluster, workload.pairs), options, present=beginning.present())
    return {run.task.name: inf if run.held_from is None else run.held_from for run in outcome.runs}


def _coverage(found: Sequence[tuple[float, float, float]]) -> Coverage:
    points = [(low, truth) for low, high, truth in found if low == high]
    ranges = [(low, high, truth) for low, high, truth in found if low != high]
    below = sum(truth < low - _SLACK_S for low, _, truth in ranges)
    above = sum(truth > high + _SLACK_S for _, high, truth in ranges)
    return Coverage(
        intervals=len(ranges),
        inside=len(ranges) - below - above,
        below=below,
        above=above,
        points=len(points),
        points_right=sum(low == truth or abs(low - truth) <= _SLACK_S for low, truth in points),
    )


def _by_horizon(truths: Sequence[tuple[float, Truth]]) -> Iterator[ByHorizon]:
    since = 0.0
    for horizon in HORIZONS_S:
        errors = [
            abs(one.start.p50 - start)
            for now, (one, start, _) in truths
            if one.state == "waiting" and since <= start - now < horizon and one.start.p50 < inf
        ]
        yield ByHorizon(horizon_s=horizon, jobs=len(errors), median_error_s=median(errors) if errors else 0.0)
        since = horizon
