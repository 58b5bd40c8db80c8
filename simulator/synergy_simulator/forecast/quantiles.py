"""An 80 % interval and the median of a few draws."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf
from typing import Final

_HELD: Final = 0.8
_SAME_S: Final = 1.0
"""Draws that differ by less tell the same time."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """The median and the ends of an 80 % interval; infinite: beyond the horizon.

    The ends are the 10th and 90th percentile, but where several draws agree on one end. Such an end is often a time
    that no arrival can change to the better: a job that nobody delays ends then. An interval from it to the 90th
    percentile would hold 90 % or more. So the other end is moved until 80 % of the draws are inside.
    """

    p10: float
    p50: float
    p90: float

    @classmethod
    def of(cls, draws: Sequence[float]) -> "Quantiles":
        """Those of the draws, at least one."""
        ordered = sorted(draws)
        low, high = _quantile(ordered, 0.1), _quantile(ordered, 0.9)
        if _count(ordered, low) > 1:
            below = sum(one < low - _SAME_S for one in ordered) / len(ordered)
            high = _quantile(ordered, min(0.9, below + _HELD))
        elif _count(ordered, high) > 1:
            above = sum(one > high + _SAME_S for one in ordered) / len(ordered)
            low = _quantile(ordered, max(0.1, 1.0 - above - _HELD))
        return cls(low, _quantile(ordered, 0.5), high)

    @property
    def is_point(self) -> bool:
        """Whether all draws agree."""
        return self.p10 == self.p90


def _count(ordered: Sequence[float], time: float) -> int:
    return sum(one == time or abs(one - time) <= _SAME_S for one in ordered)


def _quantile(ordered: Sequence[float], part: float) -> float:
    """The truth falls below the k-th smallest of n draws that are as good as itself with k / (n + 1) (Weibull). So 80
    percent of truths lie between these quantiles, which does not hold for those that spread n draws over 0 to 1."""
    place = part * (len(ordered) + 1) - 1
    below = min(max(floor(place), 0), len(ordered) - 1)
    above = min(below + 1, len(ordered) - 1)
    rest = min(max(place - below, 0.0), 1.0)
    low, high = ordered[below], ordered[above]
    if low == high or rest == 0.0:
        return low
    return inf if high == inf else low + rest * (high - low)
