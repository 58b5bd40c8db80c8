"""How fast two jobs were while both trained, from the moments at which their steps ended."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LEAST_SECONDS = 10.0
LEAST_STEPS = 5.0
"""Time, and steps of each in it, below which a speed says too little."""

Marks = Sequence[tuple[float, int]]
"""Moments (seconds, ascending) with the steps done by then."""


@dataclass(frozen=True, slots=True)
class Together:
    """The speeds of two jobs in the time in which both trained, in steps per second."""

    speeds: tuple[float, float]
    seconds: float


def speeds_together(one: Marks, other: Marks) -> Together | None:
    """The speeds between the later first mark and the earlier last one; None if that time or the steps are too few.

    Steps between two marks are spread evenly over the time between them.
    """
    if min(len(one), len(other)) < 2:
        return None
    begin, end = max(one[0][0], other[0][0]), min(one[-1][0], other[-1][0])
    seconds = end - begin
    if seconds < LEAST_SECONDS:
        return None
    steps = [_steps(marks, end) - _steps(marks, begin) for marks in (one, other)]
    if min(steps) < LEAST_STEPS:
        return None
    return Together((steps[0] / seconds, steps[1] / seconds), seconds)


def _steps(marks: Marks, at: float) -> float:
    times, steps = zip(*marks, strict=True)
    return float(np.interp(at, times, steps))
