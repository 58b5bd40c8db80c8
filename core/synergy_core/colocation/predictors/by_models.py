"""Predictors that a measurement corrects for the pairs of few models only."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from synergy_core.model.measurement import Observation


@runtime_checkable
class CorrectedByModels(Protocol):
    """A predictor that is corrected model by model."""

    def corrections(self, observations: Sequence[Observation]) -> Mapping[str, Hashable]:
        """By model, what `corrected` by these observations changes. What it predicts for two jobs follows from this
        predictor, the jobs' usages, and what is told here of their models."""
        ...
