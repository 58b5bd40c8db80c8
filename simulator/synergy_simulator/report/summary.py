"""What a report keeps of a simulation."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from synergy_simulator.engine.outcome import Outcome, Segment
from synergy_simulator.engine.usage import UsageMoment
from synergy_simulator.inputs.profiles import GIB
from synergy_simulator.report.metrics import Metrics, fairness_of, measured_runs, metrics_of

BUCKETS = 400
WINDOW_ROUNDS = 48


@dataclass(frozen=True, slots=True)
class Point:
    """Means over a stretch of time. Parts are of the whole cluster."""

    at_s: float
    gpus: float
    cpus: float
    memory: float
    waiting: float


@dataclass(frozen=True, slots=True)
class Done:
    """A measured job that is done."""

    name: str
    jct_s: float
    fairness: float
    """As `Metrics.avg_ftf` is the mean of."""
    weight: float


@dataclass(frozen=True, slots=True)
class Summary:
    """One simulation for a report."""

    label: str
    metrics: Metrics
    jcts: tuple[float, ...]
    """Of the measured jobs, ascending."""
    done: tuple[Done, ...]
    """The measured jobs by arrival."""
    points: tuple[Point, ...]
    segments: tuple[Segment, ...]
    """Who was where in the window in which the most jobs waited."""
    window: tuple[float, float]
    round_s: float
    nodes: tuple[tuple[str, int], ...]
    """Names and GPUs."""
    policy: str
    mechanism: str


def summarize(label: str, outcome: Outcome) -> Summary:
    """What a report shows of a simulation that was recorded (`Options.record`)."""
    series = outcome.usage.series
    end = outcome.usage.until
    window = _window(series, end, outcome.options.round_s)
    done = tuple(
        Done(run.task.name, (run.finish_s or 0.0) - run.task.arrival_s, fairness_of(run, outcome), run.task.weight)
        for run in measured_runs(outcome)
    )
    return Summary(
        label,
        metrics_of(outcome),
        tuple(sorted(one.jct_s for one in done)),
        done,
        tuple(_points(series, end, outcome)),
        tuple(_within(outcome.segments, window)),
        window,
        outcome.options.round_s,
        tuple((node.name, node.gpus) for node in outcome.workload.cluster.nodes()),
        outcome.options.plan.policy,
        outcome.options.plan.mechanism,
    )


def _window(series: Sequence[UsageMoment], end: float, round_s: float) -> tuple[float, float]:
    """Some rounds around the longest queue."""
    peak = max(series, key=lambda moment: (moment.waiting, moment.gpus)).at if series else 0.0
    length = WINDOW_ROUNDS * round_s
    start = max(0.0, min(peak - length / 2, end - length))
    start -= start % round_s
    return start, min(end, start + length)


def _within(segments: Sequence[Segment], window: tuple[float, float]) -> list[Segment]:
    first, last = window
    return [
        Segment(one.job, one.node, one.gpus, max(first, one.start), min(last, one.end))
        for one in segments
        if one.end > first and one.start < last and one.end > one.start
    ]


def _points(series: Sequence[UsageMoment], end: float, outcome: Outcome) -> list[Point]:
    """Means of the series over equal stretches of time."""
    if not series or end <= series[0].at:
        return []
    start, width = series[0].at, (end - series[0].at) / BUCKETS
    sums = [[0.0, 0.0, 0.0, 0.0] for _ in range(BUCKETS)]
    closing = UsageMoment(end, 0, 0, 0, 0)
    for moment, following in pairwise([*series, closing]):
        _spread(moment, following.at, sums, start, width)
    pools = outcome.workload.cluster.pools
    cpus = sum(pool.nodes * pool.cpus_per_node for pool in pools) * 1000
    memory = sum(pool.nodes * pool.memory_gib_per_node for pool in pools) * GIB
    whole = (outcome.workload.cluster.gpus, cpus, memory, 1)
    return [
        Point(start + (index + 0.5) * width, *(amount / width / most for amount, most in zip(row, whole, strict=True)))
        for index, row in enumerate(sums)
    ]


def _spread(moment: UsageMoment, until: float, sums: list[list[float]], start: float, width: float) -> None:
    """Add a stretch of the series to the buckets that it covers."""
    values = (moment.gpus, moment.cpu_millis, moment.memory_bytes, moment.waiting)
    at = moment.at
    while at < until:
        index = min(BUCKETS - 1, int((at - start) / width))
        edge = until if index == BUCKETS - 1 else min(until, max(start + (index + 1) * width, at + width * 1e-9))
        for place, value in enumerate(values):
            sums[index][place] += value * (edge - at)
        at = edge
