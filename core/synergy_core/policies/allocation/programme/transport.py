"""Which types the time of jobs can be on that are indifferent among those they can use: a transport problem.

Jobs that can use the same types are of one *kind*. What the kinds ask for, in workers, has room exactly if what can run
nowhere but in a set S of types fits in S, for each S (Hall's condition; Gale, 1957, has it for flows):

    sum of what the kinds ask for that have no type outside S  <=  sum of the workers of S
"""

import numpy as np
import numpy.typing as npt

from synergy_core.model.arrays import Floats, Ints

MOST_TYPES = 8
"""Of which there are 255 sets."""


class Kinds:
    """Kinds (K) of jobs, and the sets (S) of types that could be too few for them."""

    def __init__(self, can: npt.NDArray[np.bool_], workers: Floats) -> None:
        """`can`, rows x W: which types a job can use, at least one; at most MOST_TYPES of them."""
        bits = 1 << np.arange(len(workers))
        kinds, self.of = np.unique(can @ bits, return_inverse=True)
        """Rows: the kind of each."""
        self._can = (kinds[:, None] & bits) > 0
        """K x W."""
        self._sets: Ints = np.arange(1, 1 << len(workers))
        """S: each as bits, one for each type."""
        self._within = (kinds & ~self._sets[:, None]) == 0
        """S x K: kinds that have no type outside the set."""
        self._has = (self._sets[:, None] & bits) > 0
        self._workers = workers
        self._room: Floats = self._has @ workers
        """S: workers."""

    def asked(self, each: Floats) -> Floats:
        """K: workers that the jobs of a kind ask for together, of those that `each` of the rows does."""
        return np.asarray(np.bincount(self.of, weights=each, minlength=len(self._can)), dtype=float)

    def parts(self, asked: Floats) -> Floats:
        """K x W: which part of its time each kind is on each type, where what is asked for (K) fits.

        In proportion to the types' workers as far as that goes, first those that can use the fewest types. Of a type
        each takes at most what the condition of every set with the type in it leaves over: what it has room for beyond
        what can run nowhere else. (Sets with all of its own types in them lose what it takes on both sides, and leave
        it as much as before.) So what is left to deal out always fits; and each gets all that it asks for: were each of
        its types in a set that is full, so would be their union, which has room for what it lacks.
        """
        rest, room = np.array(asked), self._room.copy()
        got = np.zeros(self._can.shape)
        for kind in np.argsort(self._can.sum(axis=1), kind="stable").tolist():
            open_ = np.flatnonzero(self._can[kind])
            while len(open_) and rest[kind] > 0.0:
                weights = self._workers[open_]
                wanted, free = rest[kind] * weights / max(float(weights.sum()), 1e-300), []
                for type_, amount in zip(open_.tolist(), wanted.tolist(), strict=True):
                    with_it = self._has[:, type_]
                    spare = (room - self._within @ rest)[with_it & ~self._within[:, kind]].min(initial=np.inf)
                    if amount <= spare:
                        free.append(type_)
                    taken = min(amount, max(0.0, float(spare)))
                    got[kind, type_] += taken
                    rest[kind] -= taken
                    room[with_it] -= taken
                if len(free) == len(open_):
                    break
                open_ = np.array(free, dtype=np.int64)
        return np.asarray(got / np.maximum(got.sum(axis=1, keepdims=True), 1e-300))
