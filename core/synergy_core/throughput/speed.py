"""A job's speed for any amount of CPU, memory and further resources, read from its sensitivity matrix."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from synergy_core.model.resources import BASE, Vector
from synergy_core.model.snapshot import Profile

_GAIN = 1.0 + 1e-9
"""Two speeds closer than this are the same: what lies between them is rounding."""
_NOTHING = 1e-12


class Speed:
    """Speed (steps per second of the whole job) over amounts (milli-CPU, bytes, further resources) of the whole job.

    Linear between the points of the matrix, flat above the last one, in proportion to the amount below the first. A
    point that is slower than one with fewer resources counts as fast as that one: a job can leave resources unused.

    `further` names the further entries of all vectors (`resources`). One that the matrix has no axis for does not
    change the speed (`measured` is False for it); an axis that is not among them is read at its last point.
    """

    __slots__ = ("_axes", "_dimensions", "_table", "measured")

    def __init__(self, profile: Profile, further: Sequence[str] = ()) -> None:
        axes = {BASE[0]: profile.cpu_millis, BASE[1]: profile.memory_bytes}
        axes.update((name, profile.further[name]) for name in sorted(profile.further))
        names = (*BASE, *further)
        self.measured = tuple(name in axes for name in names)
        """Whether the matrix has an axis for each dimension."""
        counted = [name in names for name in axes]
        table = np.array(profile.steps_per_s, dtype=np.float64).reshape([len(axis) for axis in axes.values()])
        for index in range(table.ndim):
            np.maximum.accumulate(table, axis=index, out=table)
        last = tuple(slice(None) if is_counted else -1 for is_counted in counted)
        self._table: list[Any] = table[last].tolist()
        self._axes = [axis for axis, is_counted in zip(axes.values(), counted, strict=True) if is_counted]
        self._dimensions = [names.index(name) for name, is_counted in zip(axes, counted, strict=True) if is_counted]

    def at(self, amounts: Vector) -> float:
        """Speed with these amounts."""
        return _value(self._table, self._places(amounts), 0)

    @property
    def best(self) -> float:
        """Speed at the last point of every axis."""
        return _value(self._table, [(len(axis) - 1, len(axis) - 1, 1.0) for axis in self._axes], 0)

    def _places(self, amounts: Vector) -> list[tuple[int, int, float]]:
        """Where amounts are on each axis."""
        return [_between(axis, amounts[d]) for axis, d in zip(self._axes, self._dimensions, strict=True)]

    def points(self) -> Iterator[Vector]:
        """The points of the matrix; 0 for a dimension that it has no axis for."""
        for point in product(*self._axes):
            amounts = [0] * len(self.measured)
            for dimension, amount in zip(self._dimensions, point, strict=True):
                amounts[dimension] = amount
            yield tuple(amounts)

    def smallest(self, target: float, ceiling: Vector) -> Vector:
        """The fewest CPUs, then the least memory, then the least of each further resource that reach `target`.

        All within `ceiling`, which is the answer if nothing does, and the entry of a dimension that was not measured.
        Points of the matrix and the ceiling itself are tried.
        """
        found = list(ceiling)
        places = self._places(ceiling)
        for depth, (axis, dimension) in enumerate(zip(self._axes, self._dimensions, strict=True)):
            below = bisect_left(axis, ceiling[dimension])
            at_ceiling, first, last = places[depth], 0, below
            while first < last:
                middle = (first + last) // 2
                places[depth] = (middle, middle, 1.0)
                if _value(self._table, places, 0) < target:
                    first = middle + 1
                else:
                    last = middle
            places[depth] = at_ceiling
            if first < below:
                found[dimension] = axis[first]
                places[depth] = (first, first, 1.0)
        return tuple(found)

    def next_faster(self, amounts: Vector, ceiling: Vector) -> Vector | None:
        """The smallest growth to the next point of the matrix (or the ceiling) that is faster; None if none is."""
        faster = self.at(amounts) * _GAIN + _NOTHING
        if self.at(ceiling) < faster:
            return None
        found = self.smallest(faster, ceiling)
        return tuple(
            max(more, now) if measured else now
            for more, now, measured in zip(found, amounts, self.measured, strict=True)
        )


def _between(axis: tuple[int, ...], amount: int) -> tuple[int, int, float]:
    """Indices of the points around an amount, and how far it is from the lower (-1: nothing) to the upper one."""
    above = bisect_right(axis, amount)
    if above == len(axis):
        return above - 1, above - 1, 1.0
    start = axis[above - 1] if above else 0
    return above - 1, above, (amount - start) / (axis[above] - start)


def _value(table: list[Any], places: list[tuple[int, int, float]], depth: int) -> float:
    """Interpolation along the axes from `depth` on."""
    low, high, part = places[depth]
    if depth + 1 == len(places):
        speed: float = table[high]
        below: float = table[low] if low >= 0 else 0.0
    else:
        speed = _value(table[high], places, depth + 1)
        if part >= 1.0:
            return speed
        below = _value(table[low], places, depth + 1) if low >= 0 else 0.0
    return below + (speed - below) * part
