"""Which CPU point to measure next, and the whole curve from the measured ones (Synergy, section 3.1).

The search keeps no state: it is replayed from the points measured so far. Its caller may stop and continue at any
moment.

1. The highest CPU count is measured first.
2. Binary search for the knee: between `low` (at first no CPU at all, where the speed is 0) and `high` the middle is
   measured; a gain from there to `high` below the threshold puts the knee in the lower half, else in the upper.
3. Points are added where the curve is least certain. More CPU never slows a job and each further CPU brings less, so
   between measured points the curve lies above the chord and below the lines through its neighbours. While the two
   differ by more than half the threshold somewhere, the point where they differ most is measured.

Step 2 ends early where the bounds are within the threshold between `low` and `high`; both end when the points are
spent. The paper's search is step 2 alone; step 3 makes smooth curves as good as those with one knee. Weaker: a job that
is fast on next to no CPU and still gains later (a curve far from 0 at no CPU) may be underestimated below its lowest
measured point, and noise in a measurement passes into the curve.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from synergy_core.profiling.isotonic import non_decreasing

_SMALLEST_BUDGET = 3


def next_cpu_point(
    grid: Sequence[int], measured: Mapping[int, float], *, threshold: float = 0.10, max_points: int = 8
) -> int | None:
    """CPU point (milli-CPU, one of `grid`) to measure next; None when the search is done.

    `measured` maps CPU points to speeds (steps per second). At most `max_points` and at most half of the grid's points
    are measured (three on a grid of fewer than six). Raises ValueError for a point that is not on the grid or a
    speed that is not above 0.
    """
    _check(grid, measured)
    if not measured or grid[-1] not in measured:
        return grid[-1]
    if len(measured) >= min(max_points, max(_SMALLEST_BUDGET, len(grid) // 2), len(grid)):
        return None
    curve = _Curve(grid, measured)
    knee = _middle_around_knee(curve, threshold)
    return grid[knee] if knee is not None else curve.least_certain(threshold)


def complete_curve(grid: Sequence[int], measured: Mapping[int, float]) -> tuple[float, ...]:
    """Speed at every point of the grid, never falling: measured points smoothed, linear between them.

    Below the lowest measured point the line goes to 0 at no CPU, above the highest one the curve is flat. Noise is
    taken out by the non-decreasing sequence nearest to the measurements. Raises ValueError as `next_cpu_point`, and
    when nothing is measured.
    """
    _check(grid, measured)
    if not measured:
        raise ValueError("measured is empty; measure at least the highest CPU point")
    curve = _Curve(grid, measured)
    return tuple(curve.chord(index) for index in range(len(grid)))


def _check(grid: Sequence[int], measured: Mapping[int, float]) -> None:
    if not grid or any(b <= a for a, b in pairwise(grid)) or grid[0] < 1:
        raise ValueError(f"grid must ascend from at least 1, is {list(grid)}")
    for point, speed in measured.items():
        if point not in grid:
            raise ValueError(f"measured[{point}]: {point} is not a point of the grid {list(grid)}")
        if not (math.isfinite(speed) and speed > 0):
            raise ValueError(f"measured[{point}]: speed must be above 0, is {speed}")


class _Curve:
    """Measured points with what they say about the others. Index -1 is the origin: no CPU, no speed."""

    def __init__(self, grid: Sequence[int], measured: Mapping[int, float]) -> None:
        self.grid = grid
        indices = [index for index, point in enumerate(grid) if point in measured]
        speeds = non_decreasing([measured[grid[index]] for index in indices])
        self.known: dict[int, float] = {-1: 0.0, **dict(zip(indices, speeds, strict=True))}
        self._sorted = list(self.known)

    def cpu(self, index: int) -> int:
        return 0 if index < 0 else self.grid[index]

    def neighbours(self, index: int) -> tuple[int, int]:
        """The nearest known indices below and above an index that is not known."""
        above = next(position for position, known in enumerate(self._sorted) if known > index)
        return self._sorted[above - 1], self._sorted[above]

    def line(self, a: int, b: int, index: int) -> float:
        """Value at `index` of the straight line through two known points."""
        slope = (self.known[b] - self.known[a]) / (self.cpu(b) - self.cpu(a))
        return self.known[a] + slope * (self.cpu(index) - self.cpu(a))

    def chord(self, index: int) -> float:
        """Lower bound on a concave curve: the line between the neighbours."""
        if index in self.known:
            return self.known[index]
        if index > self._sorted[-1]:
            return self.known[self._sorted[-1]]
        return self.line(*self.neighbours(index), index)

    def ceiling(self, index: int) -> float:
        """Upper bound on a concave, non-decreasing curve: the neighbours' own chords drawn on, and the value above."""
        below, above = self.neighbours(index)
        bounds = [self.known[above]]
        position = self._sorted.index(below)
        if position > 0:
            bounds.append(self.line(self._sorted[position - 1], below, index))
        if position + 2 < len(self._sorted):
            bounds.append(self.line(above, self._sorted[position + 2], index))
        return max(min(bounds), self.chord(index))

    def doubt(self, index: int) -> float:
        """How far the two bounds are apart, relative to the lower one."""
        if index in self.known:
            return 0.0
        chord = self.chord(index)
        return (self.ceiling(index) - chord) / chord

    def least_certain(self, threshold: float) -> int | None:
        """The CPU point with the greatest doubt, if that is above half the threshold."""
        worst = max(range(len(self.grid)), key=lambda index: (self.doubt(index), -index))
        return self.grid[worst] if self.doubt(worst) > threshold / 2.0 else None


def _middle_around_knee(curve: _Curve, threshold: float) -> int | None:
    """Index of the next unmeasured middle of the binary search; None when the knee is found."""
    low, high = -1, len(curve.grid) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if middle not in curve.known:
            certain = all(curve.doubt(index) <= threshold for index in range(low + 1, high))
            return None if certain else middle
        if curve.known[high] < curve.known[middle] * (1.0 + threshold):
            high = middle
        else:
            low = middle
    return None
