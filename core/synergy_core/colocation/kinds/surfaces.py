"""Speeds and demands of many jobs at once, read from their sensitivity matrices: as `Speed` reads one.

The matrices have different axes. They are laid out one after the other in one array, so that a large one costs what it
takes and no more.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synergy_core.model.arrays import Bools, Floats, Ints
from synergy_core.model.resources import Vector
from synergy_core.model.snapshot import Profile


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """The matrix of one job, over CPU and memory."""

    axes: tuple[Ints, Ints]
    """Nothing, then the points of the axis."""
    table: Floats
    """Speed with nothing, at each point, and last at `most`; rows are CPU, columns memory."""
    most: Vector
    """What the job can use."""
    below: tuple[int, int]
    """How many points of each axis are below that."""


def surface(profile: Profile, most: Vector) -> Surface:
    """Of a matrix without further axes, for a job that can use so much CPU and memory."""
    points = profile.cpu_millis, profile.memory_bytes
    table = np.zeros((len(points[0]) + 2, len(points[1]) + 2))
    inner = table[1:-1, 1:-1]
    inner[:] = profile.steps_per_s
    for axis in (0, 1):
        np.maximum.accumulate(inner, axis=axis, out=inner)
    low, high, part = _between(points[1], most[1])
    table[:, -1] = table[:, low] + (table[:, high] - table[:, low]) * part
    low, high, part = _between(points[0], most[0])
    table[-1] = table[low] + (table[high] - table[low]) * part
    axes = np.array([0, *points[0]], dtype=np.int64), np.array([0, *points[1]], dtype=np.int64)
    return Surface(axes, table, most, (bisect_left(points[0], most[0]), bisect_left(points[1], most[1])))


def _between(axis: Sequence[int], amount: int) -> tuple[int, int, float]:
    """The rows of a table on either side of an amount, and how far it is from the first to the second."""
    above = bisect_right(axis, amount)
    if above == len(axis):
        return above, above, 1.0
    start = axis[above - 1] if above else 0
    return above, above + 1, (amount - start) / (axis[above] - start)


class Surfaces:
    """Those of many jobs; arguments and answers are arrays of one shape, with the number of a job in each place."""

    def __init__(self, each: Sequence[Surface]) -> None:
        self._axes = [np.concatenate([one.axes[d] for one in each]) for d in (0, 1)]
        self._points = [np.array([len(one.axes[d]) - 1 for one in each]) for d in (0, 1)]
        self._first = [_starts(points + 1) for points in self._points]
        self._table = np.concatenate([one.table.ravel() for one in each])
        self._start = _starts(np.array([one.table.size for one in each]))
        self._width = self._points[1] + 2
        self._most = [np.array([one.most[d] for one in each], dtype=np.int64) for d in (0, 1)]
        self._below = [np.array([one.below[d] for one in each]) for d in (0, 1)]

    def at(self, who: Ints, cpu: Ints, memory: Ints) -> Floats:
        """`Speed.at`."""
        start, width = self._start.take(who), self._width.take(who)
        low_row, high_row, part_of_row = self._places(0, who, cpu)
        low, high, part = self._places(1, who, memory)

        def along(row: Ints) -> Floats:
            line = start + row * width
            less = self._table.take(line + low)
            return np.asarray(less + (self._table.take(line + high) - less) * part)

        less = along(low_row)
        return np.asarray(less + (along(high_row) - less) * part_of_row)

    def smallest(self, who: Ints, target: Floats) -> tuple[Ints, Ints]:
        """`Speed.smallest` within what each job can use."""
        start, width = self._start.take(who), self._width.take(who)
        below, most, points = (
            [values[d].take(who) for d in (0, 1)] for values in (self._below, self._most, self._points)
        )
        # by the last column: with the most memory
        row = _bisected(self._table, start + 2 * width - 1, below[0], target, step=width)
        line = start + width * np.where(row < below[0], row + 1, points[0] + 1)
        column = _bisected(self._table, line + 1, below[1], target)
        found = [
            np.where(place < below[d], self._axes[d].take(self._first[d].take(who) + 1 + place, mode="clip"), most[d])
            for d, place in enumerate((row, column))
        ]
        return found[0], found[1]

    def _places(self, dimension: int, who: Ints, amounts: Ints) -> tuple[Ints, Ints, Floats]:
        """`_between` for each."""
        axis, first, points = self._axes[dimension], self._first[dimension].take(who), self._points[dimension].take(who)
        low = _bisected(axis, first + 1, points, amounts + 1)
        high = np.minimum(low + 1, points)
        start = axis.take(first + low)
        # above the last point both rows are the same, however far the amount is from them
        return low, high, (amounts - start) / np.maximum(axis.take(first + high) - start, 1)


def _starts(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)[:-1]])


def _bisected(values: Ints | Floats, start: Ints, count: Ints, target: Ints | Floats, step: Ints | int = 1) -> Ints:
    """The first of `count` values, from `start` on in steps, that is not below the target; `count` where all are.

    It halves as `bisect` does: speeds between points ascend but for rounding, and then the way there decides.
    """
    first, last = np.zeros_like(count), count
    while True:
        looks: Bools = first < last
        if not looks.any():
            return first
        middle = (first + last) >> 1
        is_less = looks & (values.take(start + step * middle, mode="clip") < target)
        first = np.where(is_less, middle + 1, first)
        last = np.where(is_less, last, middle)
