"""Quantiles of a few draws."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf


@dataclass(frozen=True, slots=True)
class Quantiles:
    """The 10th, 50th and 90th percentile; infinite: beyond the horizon."""

    p10: float
    p50: float
    p90: float

    @classmethod
    def of(cls, draws: Sequence[float]) -> "Quantiles":
        """The quantiles of the draws; at least one draw."""
        ordered = sorted(draws)
        return cls(_quantile(ordered, 0.1), _quantile(ordered, 0.5), _quantile(ordered, 0.9))

    @property
    def is_point(self) -> bool:
        """True if all draws agree."""
        return self.p10 == self.p90


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
