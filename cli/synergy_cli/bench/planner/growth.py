"""How a benchmark's time grows with its size."""

import math
from collections.abc import Sequence
from statistics import linear_regression


def growth_over_n_log_n(measured: Sequence[tuple[int, float]]) -> float:
    """The exponent k of the fit seconds = a * (n log n)^k (least squares of the logarithms): 1 is n log n.

    `measured` are sizes n with seconds; at least two different sizes.
    """
    xs = [math.log(n * math.log(n)) for n, _ in measured]
    return linear_regression(xs, [math.log(seconds) for _, seconds in measured]).slope
