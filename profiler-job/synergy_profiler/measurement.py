"""From the moments at which steps ended to a rate. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUPS = 11
"""Groups of consecutive steps whose centres give the error of the whole."""
_CENTRES_ERROR = sqrt(9 / 5)
"""Where each step takes a random time, slopes between neighbouring centres scatter by the root of 2/3 as much as means
of that many steps, and the slope of the line through all moments errs by the root of 6/5 as much as the mean does."""


@dataclass(frozen=True)
class Sample:
    """`step` steps were done at `at` (CLOCK_MONOTONIC, seconds); `speed` is what the command itself says of its rate,
    in steps per second, where it says so; `cache_bytes` is what its data cache holds, where it has one; `tensors` are
    the bytes of its model's largest tensor and of all of them, if it has reported its model."""

    step: int
    at: float
    speed: float | None = None
    cache_bytes: int | None = None
    tensors: tuple[int, int] | None = None
    paused: float = 0.0
    """Seconds until `at` in which the command did not train, such as evaluations."""
    epoch_steps: int | None = None
    """Steps of one pass over its data."""

    @property
    def trained(self) -> float:
        """`at` on a clock that stands still in pauses."""
        return self.at - self.paused


@dataclass(frozen=True)
class Measurement:
    """The rate of the steps in a span of time.

    `relative_error` is the standard error of the rate, as a fraction of it.
    """

    steps_per_second: float
    relative_error: float
    steps: int
    seconds: float


def measure(samples: Sequence[Sample]) -> Measurement:
    """The rate over `samples` (at least two, ascending in step and time).

    A CPU limit is enforced in periods of 100 ms: the limit's quota is used up in a burst, then all processes stop. The
    step times are therefore very uneven though the rate is constant. A count from the first step's end to the last
    one's would depend on their position in a period. The rate is the slope of a straight line fitted to all moments
    instead, to which no single moment matters much.

    Uneven step times that follow each other in a pattern do not make the rate uncertain, so its error is taken from
    up to eleven groups of consecutive steps, not from single steps.

    If the command reports its own speed, the rate is the mean of its reports.
    """
    steps, seconds = samples[-1].step - samples[0].step, samples[-1].trained - samples[0].trained
    if steps <= 0 or seconds <= 0:
        raise ValueError("a rate needs two moments with a step between them")
    told = [sample.speed for sample in samples if sample.speed is not None]
    if len(told) >= 2:
        rate = fmean(told)
        return Measurement(rate, stdev(told) / sqrt(len(told)) / rate, steps, seconds)
    seconds_per_step = _slope([sample.step for sample in samples], [sample.trained for sample in samples])
    return Measurement(1.0 / seconds_per_step, _relative_error(samples), steps, seconds)


def _slope(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Slope of the least-squares line of `ys` over `xs`."""
    mean_x, mean_y = fmean(xs), fmean(ys)
    across = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys))  # noqa: B905 - Python 3.8 has no strict
    return across / sum((x - mean_x) ** 2 for x in xs)


def _relative_error(samples: Sequence[Sample]) -> float:
    """From the slopes between the centres of consecutive groups of samples, in which the bursts average out."""
    groups = min(GROUPS, len(samples))
    if groups < 3:
        return 0.0
    bounds = [round(i * len(samples) / groups) for i in range(groups + 1)]
    parts = [samples[a:b] for a, b in zip(bounds, bounds[1:])]  # noqa: B905, RUF007
    centres = [(fmean(s.step for s in part), fmean(s.trained for s in part)) for part in parts]
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(centres, centres[1:])]  # noqa: B905, RUF007
    return _CENTRES_ERROR * stdev(slopes) / sqrt(len(slopes)) / fmean(slopes)
