"""Reference jobs: those that were measured beside each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from synergy_core.colocation.predictors.pair_table import PairTable
from synergy_core.model.arrays import Bools, Floats
from synergy_core.model.measurement import SharedMeasurement
from synergy_core.throughput.completion import completed


@dataclass(frozen=True, eq=False)
class References:
    """R models on one GPU type."""

    models: tuple[str, ...]
    """Sorted."""
    kept: Floats
    """R x R: what the model of the row keeps of its speed beside that of the column; NaN where it was not measured."""

    @cached_property
    def fingerprints(self) -> Floats:
        """R x 2 R: what each keeps beside the others, and they beside it. Matrix completion fills in what was not
        measured."""
        return completed(np.hstack([self.kept, self.kept.T]))

    @cached_property
    def known(self) -> Bools:
        """R x 2 R: which of these were measured."""
        return ~np.isnan(np.hstack([self.kept, self.kept.T]))

    @staticmethod
    def measured(pairs: Sequence[SharedMeasurement]) -> "References":
        """All models of measured pairs, each with the mean of what it kept. Raises ValueError where none has a name."""
        found: dict[tuple[str, str], list[float]] = {}
        for pair in pairs:
            names = [usage.model for usage in pair.usages]
            if len(names) == 2 and all(names):
                for own, other, fraction in zip(names, reversed(names), pair.fractions, strict=True):
                    found.setdefault((own, other), []).append(min(1.0, fraction))
        kept = {pair: sum(fractions) / len(fractions) for pair, fractions in found.items()}
        return References.of(PairTable(kept), sorted({model for model, _ in kept}))

    @staticmethod
    def of(table: PairTable, models: Sequence[str]) -> "References":
        """The entries of a table for these models. Raises ValueError if it has none."""
        names = tuple(sorted(models))
        kept = np.array([[table.kept.get((one, other), np.nan) for other in names] for one in names], dtype=float)
        if np.isnan(kept).all():
            raise ValueError("no pair of the reference models was measured")
        return References(names, kept.reshape(len(names), len(names)))
