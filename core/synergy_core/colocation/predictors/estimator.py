"""The throughput estimator for jobs that share a GPU (Gavel, sections 3.3 and 6, figure 8).

A new model is run for a short time beside some of the reference models (partial profiling). Its fingerprint is what it
keeps beside each reference and what each keeps beside it. The references stand for the new model in all of its pairs,
each by the probability that the model behaves like it (`fingerprint`): that is the initial estimate. If one reference
is certain it stands alone, as in the paper. A model that was never measured is like all of them.

A later measurement of a pair replaces the estimate and becomes a part of the fingerprint (`corrected`). If the model
then resembles another reference, that one takes over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from synergy_core.colocation.predictors.fingerprint import Fingerprint, Kept, fingerprint
from synergy_core.colocation.predictors.references import References
from synergy_core.model.arrays import Floats
from synergy_core.model.measurement import Observation
from synergy_core.model.usage import Usage


@dataclass(frozen=True, slots=True, eq=False)
class Estimator:
    """On one GPU type; a predictor (`model.measurement.Predictor`) of pairs. `Usage.model` names the model."""

    references: References
    measured: Mapping[tuple[str, str], tuple[float, int]] = field(default_factory=dict)
    """By model and partner: the mean of what the model kept, and of how many measurements; at least one is new."""
    fingerprints: Mapping[str, Fingerprint] = field(default_factory=dict)
    """Of each new model that was measured beside a reference."""

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
        size = len(self.references.models)
        kept = self.references.fingerprints[:, :size]
        return float(np.clip(self._weights(model) @ kept @ self._weights(partner), 0.0, 1.0))

    def corrected(self, observations: Sequence[Observation]) -> "Estimator":
        """The estimator after these observations as well; those of more than two jobs teach nothing here."""
        found = dict(self.measured)
        for one in observations:
            if len(one.partners) == 1 and one.own.model and one.partners[0].model:
                key = (one.own.model, one.partners[0].model)
                mean, count = found.get(key, (0.0, 0))
                found[key] = ((mean * count + min(1.0, one.fraction)) / (count + 1), count + 1)
        if found == self.measured:
            return self
        return replace(self, measured=found, fingerprints=_fingerprints(self.references, found))

    def _weights(self, model: str) -> Floats:
        """R: how much each reference stands for the model."""
        size = len(self.references.models)
        if model in self.references.models:
            return np.asarray(np.eye(size)[self.references.models.index(model)])
        known = self.fingerprints.get(model)
        return np.full(size, 1.0 / size) if known is None else known.weights


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
