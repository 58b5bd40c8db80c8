"""What was measured, and what every predictor answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from synergy_core.model.usage import Usage


@dataclass(frozen=True, slots=True)
class SharedMeasurement:
    """Jobs that shared a GPU, and each one's fraction (speed shared over speed alone)."""

    usages: tuple[Usage, ...]
    fractions: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Observation:
    """The fraction of one job that shared a GPU with others."""

    own: Usage
    partners: tuple[Usage, ...]
    fraction: float


class Predictor(Protocol):
    """Predicts fractions."""

    def fractions(self, usages: Sequence[Usage]) -> tuple[float, ...]:
        """The fraction of each job if all of them share one GPU; 1 for a job alone."""
        ...

    def corrected(self, observations: Sequence[Observation]) -> "Predictor":
        """The predictor after these observations as well; itself where it cannot learn."""
        ...


LEAST = 0.01
"""No job stops: predictions are at least this."""
