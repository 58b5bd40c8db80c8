"""The throughput estimator for jobs that share a GPU (Gavel, sections 3.3 and 6, figure 8).

A new model is run for a short time beside some of the reference models (partial profiling). Its fingerprint is what it
keeps beside each reference and what each keeps beside it. The references stand for the new model in all of its pairs,
each by the probability that the model behaves like it (`fingerprint`): that is the initial estimate. If one reference
is certain it stands alone, as in the paper. A model that was never measured is like all of them.

A later measurement of a pair replaces the estimate and becomes a part of the fingerprint (`corrected`). If the model
then resembles another reference, that one takes over.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from synergy_core.colocation.predictors.fingerprint import Fingerprint, Kept, fingerprint
from synergy_core.colocation.predictors.of_pairs import ByNames, PairFractions
from synergy_core.colocation.predictors.references import References
from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.measurement import Observation
from synergy_core.model.usage import Usage


@dataclass(frozen=True, slots=True, eq=False)
class Estimator:
    """On one GPU type; a predictor (`model.measurement.Predictor`) of pairs. `Usage.model` names the model."""

    references: References
    measured: Mapping[tuple[str, str], tuple[float, int]] = field(default_factory=dict)
    """By model and partner: the mean of what the model kept, and of how many measurements; at least one is new."""
    fingerprints: Mapping[str, Fingerprint] = field(default_factory=dict)
    """Of each new model that was measured beside a reference: they follow from `measured`."""

    def fractions(self, usages: Sequence[Usage]) -> tuple[float, ...]:
        """The fraction of each of two jobs if they share one GPU; 1 for a job alone, 0 for more than two."""
        if len(usages) < 2:
            return (1.0,) * len(usages)
        if len(usages) > 2:
            return (0.0,) * len(usages)
        one, other = (usage.model for usage in usages)
        return self.kept(one, other), self.kept(other, one)

    def kept(self, model: str, partner: str) -> float:
        """What a model keeps beside another: as measured, else as the references that stand for them do."""
        seen = self.measured.get((model, partner))
        if seen is not None:
            return seen[0]
        return _product(self._beside_references(model), self._weights(partner))

    def of_pairs(self, usages: Sequence[Usage]) -> PairFractions:
        """`fractions` of many pairs of jobs with these usages."""
        models = [usage.model for usage in usages]
        measured = ByNames(models, {pair: kept for pair, (kept, _) in self.measured.items()})
        known = self.fingerprints.keys() | set(self.references.models)
        numbers: dict[str | None, int] = {}  # models of which nothing is known are all alike
        of = np.array([numbers.setdefault(model if model in known else None, len(numbers)) for model in models])
        different = [models[index] for index in np.unique(of, return_index=True)[1].tolist()]
        weights = [self._weights(model) for model in different]
        beside = [self._beside_references(model) for model in different]
        found = np.full((len(weights), len(weights)), np.nan)

        def fractions(two: Ints) -> Floats:
            one, other = of[two], of[two[::-1]]
            lacking = np.flatnonzero(np.isnan(found[one, other]))
            for a, b in set(zip(one.ravel()[lacking].tolist(), other.ravel()[lacking].tolist(), strict=True)):
                found[a, b] = _product(beside[a], weights[b])
            return measured.of(two, found[one, other])

        return fractions

    def corrected(self, observations: Sequence[Observation]) -> "Estimator":
        """The estimator after these observations as well; those of more than two jobs teach nothing here."""
        found = self._measured_with(observations)
        if found == self.measured:
            return self
        return replace(self, measured=found, fingerprints=_fingerprints(self.references, found))

    def corrections(self, observations: Sequence[Observation]) -> Mapping[str, Hashable]:
        """The means that they change, by model; see `by_models.CorrectedByModels`.

        It is enough to tell a mean of one of its two models. Beside a reference that is the new one: the mean changes
        its fingerprint, and nothing of the reference's other pairs.
        """
        found: dict[str, set[tuple[tuple[str, str], float]]] = {}
        for pair, (mean, _) in self._measured_with(observations).items() - self.measured.items():
            model = min(pair, key=lambda name: (name in self.references.models, name))
            found.setdefault(model, set()).add((pair, mean))
        return {model: frozenset(means) for model, means in found.items()}

    def _measured_with(self, observations: Sequence[Observation]) -> dict[tuple[str, str], tuple[float, int]]:
        """`measured` after these as well."""
        found = dict(self.measured)
        for one in observations:
            if len(one.partners) == 1 and one.own.model and one.partners[0].model:
                key = (one.own.model, one.partners[0].model)
                mean, count = found.get(key, (0.0, 0))
                found[key] = ((mean * count + min(1.0, one.fraction)) / (count + 1), count + 1)
        return found

    def _beside_references(self, model: str) -> Floats:
        """What it keeps beside each reference, if the references stand for it."""
        kept = self.references.fingerprints[:, : len(self.references.models)]
        return np.asarray(self._weights(model) @ kept)

    def _weights(self, model: str) -> Floats:
        """R: how much each reference stands for the model."""
        size = len(self.references.models)
        if model in self.references.models:
            return np.asarray(np.eye(size)[self.references.models.index(model)])
        known = self.fingerprints.get(model)
        return np.full(size, 1.0 / size) if known is None else known.weights


def _product(beside: Floats, weights: Floats) -> float:
    """What is kept beside each reference, weighted: between 0 and 1, also where what was filled in is not.

    Numbers of Python's own, as NumPy takes far longer for one at a time. A product of matrices would round otherwise.
    """
    return min(max(float(beside @ weights), 0.0), 1.0)


def _fingerprints(
    references: References, measured: Mapping[tuple[str, str], tuple[float, int]]
) -> dict[str, Fingerprint]:
    """By new model; none of models that were not measured beside a reference."""
    known = set(references.models)
    found: dict[str, dict[str, Kept]] = {}
    for pair in measured:
        for new, reference in (pair, pair[::-1]):
            if new not in known and reference in known:
                own, theirs = ((new, reference), (reference, new))
                kept = (measured.get(own, (np.nan, 0))[0], measured.get(theirs, (np.nan, 0))[0])
                found.setdefault(new, {})[reference] = kept
    return {name: fingerprint(references, found[name]) for name in sorted(found)}
