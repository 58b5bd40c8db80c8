"""An 80 % interval and the median of a few draws."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf
from typing import Final

_HELD: Final = 0.8
_SAME_S: Final = 1.0
"""Draws that differ by less give the same time."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """The median and the ends of an 80 % interval; infinite: beyond the horizon.

    The ends are the 10th and 90th percentile, except where several draws agree on one end. Most often that is the
    earliest possible time, when no arrival delays the job. An interval from there to the 90th percentile would hold
    90 %, since no draw is below it. So the other end is moved until 80 % of the draws are inside.
    """

    p10: float
    p50: float
    p90: float
    by: float
    """The 90th percentile in any case."""

    @classmethod
    def of(cls, draws: Sequence[float]) -> "Quantiles":
        """The quantiles of the draws; at least one draw."""
        ordered = sorted(draws)
        low = _quantile(ordered, 0.1)
        high = by = _quantile(ordered, 0.9)
        same_low, same_high = (sum(_same(one, end) for one in ordered) for end in (low, high))
        if same_low > 1:
            below = sum(one < low and not _same(one, low) for one in ordered) / len(ordered)
            high = _quantile(ordered, min(0.9, below + _HELD))
        elif same_high > 1:
            above = sum(one > high and not _same(one, high) for one in ordered) / len(ordered)
            low = _quantile(ordered, max(0.1, 1.0 - above - _HELD))
        return cls(low, _quantile(ordered, 0.5), high, by)

    @property
    def is_point(self) -> bool:
        """True if all draws agree."""
        return self.p10 == self.p90


def _same(one: float, other: float) -> bool:
    return one == other or abs(one - other) < _SAME_S


def _quantile(ordered: Sequence[float], part: float) -> float:
    """The true value is below the k-th smallest of n equally distributed draws with probability k / (n + 1) (Weibull).
    So 80 % of true values are between these quantiles. This does not hold for quantiles that spread n draws over 0 to
    1."""
    place = part * (len(ordered) + 1) - 1
    below = min(max(floor(place), 0), len(ordered) - 1)
    above = min(below + 1, len(ordered) - 1)
    rest = min(max(place - below, 0.0), 1.0)
    low, high = ordered[below], ordered[above]
    if low == high or rest == 0.0:
        return low
    return inf if high == inf else low + rest * (high - low)
