"""Predictions by weights that are known (`effects`): of any number of jobs, and of very many pairs at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from synergy_core.colocation.predictors.features import (
    BESIDE,
    LOAD,
    RANDOM,
    Feature,
    configuration,
    dot,
    features_of_all,
)
from synergy_core.colocation.predictors.of_pairs import ByNames, PairFractions
from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.measurement import LEAST
from synergy_core.model.usage import Usage


@dataclass(frozen=True, slots=True, eq=False)
class ByWeights:
    """Predicts by these weights; what they do not name has none."""

    weights: Mapping[Feature, float]
    counters: bool
    """They are for GPU counters, not for utilisation."""

    def fractions(self, usages: Sequence[Usage]) -> tuple[float, ...]:
        """The fraction of each job if all of them share one GPU."""
        if len(usages) < 2:
            return (1.0,) * len(usages)
        seen = [usage.seen_by(counters=self.counters) for usage in usages]
        return tuple(max(LEAST, 1.0 + dot(features, self.weights)) for features in features_of_all(seen))

    def of_pairs(self, usages: Sequence[Usage]) -> PairFractions:
        """`fractions` of many pairs of jobs with these usages."""
        sums = _SumsOfPairs([usage.seen_by(counters=self.counters) for usage in usages], self.weights)
        return lambda two: np.maximum(LEAST, 1.0 + sums.of(two))


class _SumsOfPairs:
    """`dot` of the features of two jobs, for many pairs: the same products, added in the same order."""

    def __init__(self, usages: Sequence[Usage], weights: Mapping[Feature, float]) -> None:
        self._compute = np.array([usage.compute for usage in usages], dtype=float)
        self._load = [weights.get((kind, ""), 0.0) for kind in LOAD]
        models = [usage.model for usage in usages]
        configurations = [configuration(usage) for usage in usages]
        self._of_job = [
            np.array(
                [weights.get((kind, name), 0.0) if model else 0.0 for name, model in zip(names, models, strict=True)]
            )
            for kind, names in zip(RANDOM, (models, models, configurations) * 2, strict=False)
        ]
        """By kind but for the last, which is of pairs."""
        self._of_pair = ByNames(models, _weights_of_pairs(weights))

    def of(self, two: Ints) -> Floats:
        """2 x P."""
        other = two[::-1]
        own, load = self._compute[two], self._compute[other]
        partners, compute, product, excess = self._load
        total = partners + load * compute
        total += own * load * product
        total += np.maximum(0.0, own + load - 1.0) * excess
        factors = ((two, 1.0), (two, load), (two, 1.0), (other, 1.0), (other, own), (other, 1.0))
        for weights, (whose, factor) in zip(self._of_job, factors, strict=True):
            if weights.any():
                total += factor * weights[whose]
        return total + self._of_pair.of(two) if self._of_pair else total


def _weights_of_pairs(weights: Mapping[Feature, float]) -> dict[tuple[str, str], float]:
    """By job and partner. A model's name may have the word between them in it, so each place of it is tried."""
    found = {}
    for (kind, name), weight in weights.items():
        place = name.find(BESIDE) if kind == "pair" else -1
        while place >= 0:
            own, partner = name[:place], name[place + len(BESIDE) :]
            if own and partner:
                found[own, partner] = weight
            place = name.find(BESIDE, place + 1)
    return found
