"""The programme of jobs that are equally fast on all types that they can use, without a solver.

An agnostic scheduler sees every cluster so (`agnostic`), and any scheduler a cluster of one type. A throughput is then
just a time, and conditions on sets of types say which times fit (`transport`). If the times rise along a straight line,
each condition bounds how far, and so does each job's own time. The lowest bound is the optimum, and what it bounds has
the dual prices. The union of full sets is full (their room is modular, what is asked of them supermodular), so the
prices are those of the union and of every job that it holds.

A vertex of a linear programme leaves little idle only by chance. Here nothing is left that a job could use: a job that
no set holds rises on, in proportion to what it lacks of its whole time, until a set holds it or it has all.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation.programme.activities import Activities
from synergy_core.policies.allocation.programme.transport import MOST_TYPES, Kinds

_ROUNDING = 1e-9
"""Of its fastest speed: so much more may be asked for, as of a solver."""
_FULL = 1e-12
"""Of its workers: a set that has no more room is full."""


Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """The optimum of a level; `time` (M) and `price` (G) as those of a `programme.Point`."""

    time: Floats
    level: float
    price: Floats


class Indifferent:
    """What `programme.Programme` asks a solver for, of classes of jobs (G) to which their types are all one."""

    @classmethod
    def of(cls, acts: Activities, members: Floats, workers: Floats, fastest: Floats) -> Self | None:
        """None where some class is faster on one type than on another, pairs share workers, or there are many types."""
        one_speed = acts.alone == len(acts) and np.array_equal(acts.first_rate, fastest[acts.first])
        places = np.unique(acts.first * len(workers) + acts.type_)
        if not one_speed or len(workers) > MOST_TYPES or len(places) < len(acts):
            return None
        return cls(acts, members, workers, fastest)

    def __init__(self, acts: Activities, members: Floats, workers: Floats, fastest: Floats) -> None:
        self._acts, self._fastest = acts, fastest
        self._time = members / fastest
        """G: the time of all jobs of a class for a step per second each; and in workers."""
        scale, can = np.zeros(len(members)), np.zeros((len(members), len(workers)), dtype=bool)
        scale[acts.first] = acts.scale
        can[acts.first, acts.type_] = True
        self._taken = scale * self._time
        self._kinds = Kinds(can, workers)

    def solve(self, base: Floats, direction: Floats | None) -> Reached | None:
        """The largest level at which jobs have `base + level * direction` (G; without: 0); None if base is too much."""
        kinds = self._kinds
        asked = kinds.asked(self._taken * base)
        if not kinds.fit(asked) or (base > self._fastest * (1.0 + _ROUNDING)).any():
            return None
        if direction is None:
            return Reached(self._times(self._filled_up(base)), 0.0, np.zeros(len(base)))
        level, ends, rise = self._risen(base, direction)
        speed = base + level * direction
        held = kinds.confined_to((ends | self._full(speed)) & (kinds.within @ rise > 0))
        if held.any():
            price = np.where(held[kinds.of], self._taken, 0.0) / rise[held].sum()
        else:
            price, first = np.zeros(len(base)), int(np.argmin(self._until_fastest(base, direction)))
            price[first] = 1.0 / direction[first]
        return Reached(self._times(self._filled_up(speed)), level, price)

    def _risen(self, base: Floats, direction: Floats) -> tuple[float, Mask, Floats]:
        """The first level that is a bound, the sets (S) whose it is, and workers that a level takes by kind."""
        kinds = self._kinds
        rise = kinds.asked(self._taken * direction)
        filling = kinds.within @ rise
        until_full = np.divide(self._left(base), filling, out=np.full(len(filling), np.inf), where=filling > 0)
        level = min(until_full.min(), self._until_fastest(base, direction).min())
        return float(level), until_full <= level, rise

    def _until_fastest(self, base: Floats, direction: Floats) -> Floats:
        lacks = np.maximum(self._fastest - base, 0.0)
        return np.asarray(np.divide(lacks, direction, out=np.full(len(lacks), np.inf), where=direction > 0))

    def _left(self, speed: Floats) -> Floats:
        """S: workers that sets of types have left."""
        taken = self._kinds.within @ self._kinds.asked(self._taken * speed)
        return np.asarray(np.maximum(self._kinds.room - taken, 0.0))

    def _full(self, speed: Floats) -> Mask:
        return np.asarray(self._left(speed) <= _FULL * self._kinds.room)

    def _filled_up(self, speed: Floats) -> Floats:
        """G: the speeds at which no job could have more without another having less."""
        full = self._full(speed)
        for _ in full:  # each time some set gets full, or all jobs have all
            held = self._kinds.confined_to(full)[self._kinds.of]
            lacks = np.where(held, 0.0, np.maximum(self._fastest - speed, 0.0))
            if not (lacks > _ROUNDING * self._fastest).any():
                break
            level, ends, _ = self._risen(speed, lacks)
            speed = speed + level * lacks
            full |= ends
        return speed

    def _times(self, speed: Floats) -> Floats:
        """M: times with which each job has its speed (G)."""
        parts = self._kinds.parts(self._kinds.asked(self._taken * speed))[self._kinds.of]
        return np.asarray(parts[self._acts.first, self._acts.type_] * (self._time * speed)[self._acts.first])
