"""Predictions for very many pairs of jobs at once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.measurement import Predictor
from synergy_core.model.usage import Usage

PairFractions = Callable[[Ints], Floats]
"""For pairs of numbers of jobs (2 x P), what each of the two keeps beside the other (2 x P)."""


@runtime_checkable
class PredictsPairs(Protocol):
    """A predictor that predicts many pairs at once."""

    def of_pairs(self, usages: Sequence[Usage]) -> PairFractions:
        """`fractions` of pairs of jobs with these usages, bit for bit."""
        ...


def of_pairs(predictor: Predictor, usages: Sequence[Usage]) -> PairFractions:
    """The same for any predictor; one that predicts a pair at a time is asked for each.

    What a job keeps must not depend on which of the two comes first: what was found is used in either order.
    """
    if isinstance(predictor, PredictsPairs):
        return predictor.of_pairs(usages)

    def one_by_one(two: Ints) -> Floats:
        pairs = two.T.tolist()
        return (
            np.array([predictor.fractions((usages[a], usages[b])) for a, b in pairs], dtype=np.float64).reshape(-1, 2).T
        )

    return one_by_one


class ByNames:
    """Values of pairs of names, for many jobs that have these names."""

    def __init__(self, names: Sequence[str], values: Mapping[tuple[str, str], float]) -> None:
        """`names` are the jobs'. A value is that of a job with the first name beside one with the second."""
        numbers: dict[str, int] = {}
        self._names = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
        self._size = len(numbers)
        known = sorted(
            (numbers[own] * self._size + numbers[other], value)
            for (own, other), value in values.items()
            if own in numbers and other in numbers
        )
        self._keys = np.array([key for key, _ in known], dtype=np.int64)
        self._values = np.array([value for _, value in known], dtype=np.float64)

    def __bool__(self) -> bool:
        """Whether any pair of these jobs has a value."""
        return bool(len(self._keys))

    def of(self, two: Ints, default: Floats | float = 0.0) -> Floats:
        """Of each of two beside the other (2 x P)."""
        if not self:
            return np.broadcast_to(default, two.shape)
        names = self._names[two]
        keys = names * self._size + names[::-1]
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[places] == keys, self._values[places], default)
