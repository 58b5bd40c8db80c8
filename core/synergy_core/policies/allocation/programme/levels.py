"""The highest level at which all jobs get what the level demands of the cluster.

Max-min fairness, makespan, finish-time fairness and each step of water filling ask the same question. A level z demands
a throughput r(z) of each class of jobs, which does not fall as z rises. How high can z be? Where r is linear in z, one
linear programme answers. Otherwise:

1. Solve for delta, the largest part of the way from r(low), which is feasible, to r(z). If it is all of it, z is
   reached.
2. The dual prices p of that programme bound every feasible throughput: p . throughput <= p . r(low) + delta. So no z
   with p . r(z) above that is feasible. Go on with the largest z that is left.

Each z is an upper bound, and every programme gives a feasible point, which is a lower bound. The bounds meet after
finitely many steps, because a vertex of the dual gives the prices and none occurs twice; in practice after two to six.
"""

from collections.abc import Callable
from dataclasses import dataclass
from sys import float_info

import numpy as np

from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation.budget import OutOfTimeError
from synergy_core.policies.allocation.programme.point import Beyond
from synergy_core.policies.allocation.programme.programme import Programme

Requirement = Callable[[float], Floats]
"""Steps per second that a level demands of one job of each class (G)."""

_CLOSE = 1e-10
_SLACK = 1e-9
"""The next programme demands what was reached before, less a hair: rounding then cannot make it infeasible; and less of
a job's full speed than that is below what the solver tells apart."""
_MOST_STEPS = 100


_PATIENCE = 4
"""Steps after which every second one tries the middle: where r is far from linear, upper bounds alone fall slowly."""


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """What was reached."""

    z: float
    time: Floats
    """M: time of each class of activities, with which every class of jobs has at least r(z)."""
    scarcity: Floats
    """G: as of a `Point` whose prices forbid any higher z; jobs of a class with none may rise on while others stay."""
    ceiling: Floats
    """G: as of that `Point`; infinite where no price says anything."""
    proved: bool
    """Whether no higher level is feasible; not so where time ran out."""
    bound: float = np.inf
    """No level above it is feasible."""


@dataclass(frozen=True, slots=True, eq=False)
class _Best:
    """The best so far."""

    z: float
    time: Floats
    proved: bool


def highest_level(
    programme: Programme,
    requirement: Requirement,
    *,
    low: float,
    high: float,
    first: float | None = None,
    reached: Floats | None = None,
) -> Level:
    """The largest z from `low`, which must be feasible, to `high`.

    `first` is where to begin, else at `high`: far better where r bends often, since prices say little of far levels.
    `reached` (G): a throughput that was had together, and is r(low) but for rounding. Raises OutOfTimeError where time
    ran out before there was anything but `low`.
    """
    held = requirement(low)
    had = held if reached is None else np.minimum(held, reached)
    upper, best, priced = high, None, None
    stride = (high if first is None else first) - low
    for step in range(_MOST_STEPS):
        trial = min(upper, low + stride)
        if trial == upper and step >= _PATIENCE and step % 2:
            trial = 0.5 * (low + upper)
        try:
            demanded, base = requirement(trial), had * (1.0 - _SLACK)
            # jobs that get no more than before stay out of it: rounding would be their coefficient
            direction = np.where(demanded > held + _SLACK * programme.fastest, demanded - base, 0.0)
            point = programme.solve(base=base, direction=direction if direction.any() else None)
        except OutOfTimeError:
            break
        if point.level >= 1.0 - _SLACK or not direction.any():
            best = _Best(trial, point.time, proved=trial == upper)
            low, held, had = trial, demanded, np.minimum(demanded, programme.throughput(point.time))
            stride *= 4.0
        else:
            here = _reached(programme, requirement, point.time, low, trial)
            if best is None or here > best.z:
                best = _Best(here, point.time, proved=False)
            if not point.cut_short:
                priced = point
                upper = min(
                    upper, _bound(requirement, point.price, float(point.price @ base) + point.level, low, trial)
                )
        if best.proved or point.cut_short:
            break
        if upper - best.z <= _CLOSE * max(abs(upper), 1e-12):
            best = _Best(best.z, best.time, proved=True)
            break
    if best is None:
        raise OutOfTimeError
    z = min(best.z, upper)  # rounding may have said that a hair more was reached
    beyond = Beyond(np.zeros_like(held), np.full_like(held, np.inf)) if priced is None else programme.beyond(priced)
    time = programme.topped_up(best.time, requirement(z))
    return Level(z, time, beyond.scarcity, beyond.ceiling, best.proved, upper)


def _reached(programme: Programme, requirement: Requirement, time: Floats, low: float, high: float) -> float:
    """The largest z at which all jobs have what it demands."""
    most = programme.throughput(time) * (1.0 + _SLACK) + _SLACK * programme.fastest
    short = np.flatnonzero(requirement(high) > most)  # the others have enough at any z
    if not len(short):
        return high
    enough, unit = most[short], programme.fastest[short]
    return largest(lambda z: float(((requirement(z)[short] - enough) / unit).max()), low, high)


def _bound(requirement: Requirement, price: Floats, most: float, low: float, high: float) -> float:
    """The largest z that prices allow."""
    return largest(lambda z: float(price @ requirement(z)) - most, low, high)


def largest(excess: Callable[[float], float], low: float, high: float) -> float:
    """The largest z in [low, high] where a function that never falls is at most 0; `low` where it never is.

    By the secant, which ends at once on a straight piece: a step goes at least a hair beyond an end. Where one end
    stays, the next step goes by half of the value there (the Illinois method). Every fourth step goes to the middle.
    """
    over = excess(high)
    if over <= 0.0:
        return high
    under = excess(low)
    if under > 0.0:
        return low
    rose = fell = False
    for step in range(800):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if step % 4 < 3 and over < np.inf:
            hair = 2.0 * float_info.epsilon * abs(low)
            secant = low + (high - low) * (under / (under - over))
            secant = min(max(secant, low + hair), high - hair)
            middle = secant if low < secant < high else middle
        value = excess(middle)
        if value <= 0.0:
            low, under, over = middle, value, over * (0.5 if rose else 1.0)
            rose, fell = True, False
        else:
            high, over, under = middle, value, under * (0.5 if fell else 1.0)
            rose, fell = False, True
    return low
