"""The throughput estimator for jobs that share a GPU (Gavel, sections 3.3 and 6, figure 8).

A new model is run for a short time beside some of the reference models (partial profiling). Its fingerprint is what it
keeps beside each reference and what each keeps beside it: the entries that were measured, and those that matrix
completion fills in together with the references' own. The reference with the nearest fingerprint stands for the new
model in all of its pairs: its measurements are the initial estimate.

A later measurement of a pair replaces the estimate and becomes a part of the fingerprint (`corrected`). If the model
then resembles another reference, that one takes over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from synergy_core.colocation.predictors.references import References
from synergy_core.model.arrays import Floats
from synergy_core.model.measurement import Observation
from synergy_core.model.usage import Usage
from synergy_core.throughput.completion import completed

_MEASURED = 8.0
"""Weight of an entry of a fingerprint that was measured, beside those that were filled in."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimator:
    """On one GPU type; a predictor (`model.measurement.Predictor`) of pairs. `Usage.model` names the model."""

    references: References
    measured: Mapping[tuple[str, str], tuple[float, int]] = field(default_factory=dict)
    """By model and partner: the mean of what the model kept, and of how many measurements; at least one is new."""
    nearest: Mapping[str, str] = field(default_factory=dict)
    """The reference that stands for each model that was measured."""

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
        place = {name: index for index, name in enumerate(self.references.models)}
        own, other = (place.get(self.nearest.get(name, name)) for name in (model, partner))
        kept = self.references.kept
        if own is not None and other is not None and not np.isnan(kept[own, other]):
            return float(kept[own, other])
        some = kept if own is None else kept[own : own + 1]
        some = some if other is None else some[:, other : other + 1]
        return float(np.nanmean(kept if np.isnan(some).all() else some))

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
        return replace(self, measured=found, nearest=_nearest(self.references, found))


def _nearest(references: References, measured: Mapping[tuple[str, str], tuple[float, int]]) -> dict[str, str]:
    """By new model the reference whose fingerprint is nearest."""
    known = set(references.models)
    new = sorted({name for pair in measured for name in pair if name not in known})
    if not new:
        return {}
    size = len(references.models)
    own, theirs = np.full((len(new), size), np.nan), np.full((len(new), size), np.nan)
    for row, name in enumerate(new):
        for column, reference in enumerate(references.models):
            own[row, column] = measured.get((name, reference), (np.nan, 0))[0]
            theirs[row, column] = measured.get((reference, name), (np.nan, 0))[0]
    seen = np.hstack([own, theirs])
    prints = completed(np.vstack([np.hstack([references.kept, references.kept.T]), seen]))
    weights = np.where(np.isnan(seen), 1.0, _MEASURED)
    squares: Floats = (prints[size:, None, :] - prints[None, :size, :]) ** 2
    best = ((squares * weights[:, None, :]).sum(axis=2) / weights.sum(axis=1)[:, None]).argmin(axis=1).tolist()
    some = ~np.isnan(seen).all(axis=1)
    return {name: references.models[best[row]] for row, name in enumerate(new) if some[row]}
