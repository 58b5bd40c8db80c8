"""Throughputs of pairs as they were measured (Gavel, section 3.1): a predictor that looks them up."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from synergy_core.colocation.predictors.of_pairs import ByNames, PairFractions
from synergy_core.model.measurement import Observation
from synergy_core.model.usage import Usage


@dataclass(frozen=True, slots=True)
class PairTable:
    """On one GPU type: what a model keeps of its speed beside another.

    `Usage.model` names the model. Two that are not in the table, and more than two, cannot share a GPU: all stop.
    """

    kept: Mapping[tuple[str, str], float]
    """By model and partner, from 0 to 1."""

    def fractions(self, usages: Sequence[Usage]) -> tuple[float, ...]:
        """The fraction of each job if all of them share one GPU; 1 for a job alone."""
        if len(usages) < 2:
            return (1.0,) * len(usages)
        if len(usages) > 2:
            return (0.0,) * len(usages)
        one, other = (usage.model for usage in usages)
        return self.kept.get((one, other), 0.0), self.kept.get((other, one), 0.0)

    def of_pairs(self, usages: Sequence[Usage]) -> PairFractions:
        """`fractions` of many pairs of jobs with these usages."""
        return ByNames([usage.model for usage in usages], self.kept).of

    def corrected(self, _observations: Sequence[Observation]) -> "PairTable":
        """Itself: it is what was measured."""
        return self

    def corrections(self, _observations: Sequence[Observation]) -> Mapping[str, Hashable]:
        """None (`by_models.CorrectedByModels`)."""
        return {}
