"""The programme of jobs that are as fast on one type as on any other that they can use, without a solver.

An agnostic scheduler sees every cluster so (`agnostic`), and any scheduler a cluster of one type. A throughput is then
nothing but a time, and which times there is room for say conditions on sets of types (`transport`). Where the times
rise on a straight line, each condition bounds how far, and so does each job's own time. The lowest bound is the
optimum, and what it bounds has the dual prices. The union of sets that are full is full (what they have room for is
modular, what is asked of them supermodular): the prices are those of the union, and name every job that cannot rise.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from synergy_core.allocation.activities import Activities
from synergy_core.allocation.problem import Floats
from synergy_core.allocation.transport import MOST_TYPES, Kinds

_CLOSE = 1e-9
"""Of its fastest speed: so much more may be asked for, as of a solver."""
_TIED = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """The optimum of a level; `time` (M) and `price` (G) as those of a `programme.Point`."""

    time: Floats
    level: float
    price: Floats


class Indifferent:
    """The classes of jobs (G) of one programme."""

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
        if not kinds.fit(asked) or (base > self._fastest * (1.0 + _CLOSE)).any():
            return None
        if direction is None:
            return Reached(self._times(base, asked), 0.0, np.zeros(len(base)))
        rise = kinds.asked(self._taken * direction)
        filling, room = kinds.within @ rise, np.maximum(kinds.room - kinds.within @ asked, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            until_full = np.where(filling > 0, room / filling, np.inf)
            until_fastest = np.where(direction > 0, np.maximum(self._fastest - base, 0.0) / direction, np.inf)
        level = float(min(until_full.min(), until_fastest.min()))
        full = (filling > 0) & (room - level * filling <= _TIED * kinds.room)
        if full.any():
            named = kinds.named(full)
            price = np.where(named[kinds.of], self._taken, 0.0) / rise[named].sum()
        else:
            price, first = np.zeros(len(base)), int(np.argmin(until_fastest))
            price[first] = 1.0 / direction[first]
        return Reached(self._times(base + level * direction, asked + level * rise), level, price)

    def _times(self, speed: Floats, asked: Floats) -> Floats:
        """M: times with which each job has its speed (G); `asked` (K) are the workers of that."""
        parts = self._kinds.parts(asked)[self._kinds.of]
        return np.asarray(parts[self._acts.first, self._acts.type_] * (self._time * speed)[self._acts.first])
