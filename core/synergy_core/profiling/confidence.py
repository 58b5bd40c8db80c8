"""How well the measured speeds are known: a confidence interval for each point, and which point to measure again.

There are two kinds of noise. Within a run the steps take different times; what that does to the mean is in the run's
own standard error. From run to run the speed differs by more than that (another pod, other neighbours on the node);
only runs of the same point show it. Their spread, relative to the speed, is assumed to be the same at all points of a
profile. A few repeated points then show it for all.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeVar

LEVEL: Final = 0.95
"""The true speed lies within an interval with this probability."""

_WITHIN_FREEDOM: Final = 9
"""A run's standard error comes from ten slopes between groups of its steps."""
_QUANTILES: Final = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Student's t at 97.5 % for 1 to 10 degrees of freedom."""
_NORMAL_QUANTILE: Final = 1.959964

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class PointRun:
    """What one run of a point found: steps per second, and their standard error relative to them."""

    steps_per_s: float
    relative_error: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.steps_per_s) and self.steps_per_s > 0):
            raise ValueError(f"steps_per_s must be above 0, is {self.steps_per_s}")
        if not (math.isfinite(self.relative_error) and self.relative_error >= 0):
            raise ValueError(f"relative_error must be at least 0, is {self.relative_error}")


@dataclass(frozen=True, slots=True)
class PointEstimate:
    """A point's speed, and half the width of its confidence interval relative to it."""

    steps_per_s: float
    uncertainty: float

    @property
    def low(self) -> float:
        """Lower end of the interval, at least 0."""
        return max(0.0, self.steps_per_s * (1.0 - self.uncertainty))

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.steps_per_s * (1.0 + self.uncertainty)


def estimates(points: Mapping[Key, Sequence[PointRun]]) -> dict[Key, PointEstimate]:
    """The speed at each point, the mean of its runs, with its interval.

    The wider of two intervals counts: the one from the runs' own errors, and, where any point was measured more than
    once, the one from the spread between runs. Raises ValueError for a point without runs.
    """
    for key, runs in points.items():
        if not runs:
            raise ValueError(f"points[{key!r}] has no runs; leave it out")
    spread = run_to_run(points)
    freedom = _freedom(points)
    found = {}
    for key, runs in points.items():
        mean = _mean(runs)
        within = math.sqrt(sum((run.relative_error * run.steps_per_s / mean) ** 2 for run in runs)) / len(runs)
        widths = [t_quantile(_WITHIN_FREEDOM * len(runs)) * within]
        if spread is not None:
            widths.append(t_quantile(freedom) * spread / math.sqrt(len(runs)))
        found[key] = PointEstimate(mean, max(widths))
    return found


def run_to_run(points: Mapping[Key, Sequence[PointRun]]) -> float | None:
    """Standard deviation of a run's speed relative to its point's, pooled over all points; None where no point has
    more than one run."""
    freedom = _freedom(points)
    if freedom == 0:
        return None
    squares = 0.0
    for runs in points.values():
        mean = _mean(runs)
        squares += sum((run.steps_per_s / mean - 1.0) ** 2 for run in runs)
    return math.sqrt(squares / freedom)


def next_repeat(
    cpu_points: Mapping[int, Sequence[PointRun]], *, least_runs: int = 1, max_repeats: int = 4, precision: float = 0.10
) -> int | None:
    """The CPU point to measure once more; None where the points are known well enough or the repeats are spent.

    Every point gets `least_runs`. Beyond that up to `max_repeats` runs go, one by one, to the point that is known
    worst, while any is known to less than `precision`, or while points contradict each other: more CPU never slows a
    job. A speed that falls by more than the intervals allow is noise that single runs do not show. (Less than half of
    `precision` does not matter.)
    """
    few = [point for point, runs in cpu_points.items() if len(runs) < least_runs]
    if few:
        return max(few)
    if sum(len(runs) - least_runs for runs in cpu_points.values()) >= max_repeats:
        return None
    known = estimates(cpu_points)
    contradicting = [
        point
        for low, high in pairwise(sorted(known))
        if known[low].low > known[high].high
        and known[low].steps_per_s > known[high].steps_per_s * (1.0 + precision / 2.0)
        for point in (low, high)
    ]
    doubtful = contradicting or [point for point, estimate in known.items() if estimate.uncertainty > precision]
    if not doubtful:
        return None
    return min(doubtful, key=lambda point: (len(cpu_points[point]), -known[point].uncertainty, -point))


def t_quantile(freedom: int) -> float:
    """Student's t at 97.5 % (two-sided 95 %). Above 10 degrees of freedom by the expansion in 1 / freedom."""
    if freedom <= len(_QUANTILES):
        return _QUANTILES[freedom - 1]
    z = _NORMAL_QUANTILE
    first, second = (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def _freedom(points: Mapping[Key, Sequence[PointRun]]) -> int:
    return sum(len(runs) - 1 for runs in points.values())


def _mean(runs: Sequence[PointRun]) -> float:
    return sum(run.steps_per_s for run in runs) / len(runs)
