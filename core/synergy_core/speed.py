"""A job's speed for any amount of CPU and memory, read from its sensitivity matrix."""

from bisect import bisect_left, bisect_right
from itertools import accumulate

from synergy_core.model import Profile
from synergy_core.resources import Vector

_GAIN = 1.0 + 1e-9
"""Two speeds closer than this are the same: what lies between them is rounding."""
_NOTHING = 1e-12


class Speed:
    """Speed (steps per second of the whole job) over amounts (milli-CPU, bytes) of the whole job.

    Linear between the points of the matrix, flat above the last one, in proportion to the amount below the first. A
    point that is slower than one with fewer resources counts as fast as that one: a job can leave resources unused.
    """

    __slots__ = ("_cpu", "_memory", "_rows")

    def __init__(self, profile: Profile) -> None:
        self._cpu = profile.cpu_millis
        self._memory = profile.memory_bytes
        self._rows: list[list[float]] = []
        for row in profile.steps_per_s:
            rising = list(accumulate(row, max))
            self._rows.append(list(map(max, self._rows[-1], rising)) if self._rows else rising)

    def at(self, amounts: Vector) -> float:
        """Speed with these amounts."""
        cpu, memory = amounts
        low, high, part = _between(self._cpu, cpu)
        column = _between(self._memory, memory)
        speed = _along(self._rows[high], column)
        if part < 1.0:
            below = _along(self._rows[low], column) if low >= 0 else 0.0
            speed = below + (speed - below) * part
        return speed

    def smallest(self, target: float, ceiling: Vector) -> Vector:
        """The fewest CPUs, then the least memory, that reach `target` within `ceiling`; the ceiling if nothing does.

        Points of the matrix and the ceiling itself are tried.
        """
        most_cpu, most_memory = ceiling
        column = _between(self._memory, most_memory)
        below = bisect_left(self._cpu, most_cpu)
        row = bisect_left(self._rows, target, hi=below, key=lambda speeds: _along(speeds, column))
        cpu = self._cpu[row] if row < below else most_cpu
        below = bisect_left(self._memory, most_memory)
        place = bisect_left(self._memory, target, hi=below, key=lambda memory: self.at((cpu, memory)))
        return cpu, self._memory[place] if place < below else most_memory

    def next_faster(self, amounts: Vector, ceiling: Vector) -> Vector | None:
        """The smallest growth to the next point of the matrix (or the ceiling) that is faster; None if none is."""
        faster = self.at(amounts) * _GAIN + _NOTHING
        if self.at(ceiling) < faster:
            return None
        cpu, memory = self.smallest(faster, ceiling)
        return max(cpu, amounts[0]), max(memory, amounts[1])


def _between(axis: tuple[int, ...], amount: int) -> tuple[int, int, float]:
    """Indices of the points around an amount, and how far it is from the lower (-1: nothing) to the upper one."""
    above = bisect_right(axis, amount)
    if above == len(axis):
        return above - 1, above - 1, 1.0
    start = axis[above - 1] if above else 0
    return above - 1, above, (amount - start) / (axis[above] - start)


def _along(row: list[float], position: tuple[int, int, float]) -> float:
    low, high, part = position
    below = row[low] if low >= 0 else 0.0
    return below + (row[high] - below) * part
