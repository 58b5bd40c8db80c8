"""The rows of a programme for what some jobs together may have of a type, at least and at most."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation.problem import Bound
from synergy_core.policies.allocation.programme.symmetry import Merged


@dataclass(frozen=True, slots=True, eq=False)
class BoundRows:
    """B rows: least_b <= sum_i coefficient_bi Y_i <= most_b."""

    coefficients: Floats
    """B x M: workers of the type that an activity of one of the jobs takes; of a pair, if either is one of them."""
    least: Floats
    most: Floats

    def __len__(self) -> int:
        return len(self.least)


NO_ROWS: Final = BoundRows(np.zeros((0, 0)), np.zeros(0), np.zeros(0))


def members(bounds: Sequence[Bound], jobs: int) -> Floats:
    """B x J: 1 for the jobs of each bound."""
    found = np.zeros((len(bounds), jobs))
    for row, bound in enumerate(bounds):
        found[row, list(bound.jobs)] = 1.0
    return found


def bound_rows(bounds: Sequence[Bound], merged: Merged) -> BoundRows:
    """The rows, where no class has jobs inside and outside of a bound."""
    if not bounds:
        return NO_ROWS
    acts = merged.activities
    inside = members(bounds, len(merged.job_class))[:, merged.representative]
    concerned = np.maximum(inside[:, acts.first], inside[:, acts.second])
    on_type = acts.type_[None, :] == np.array([bound.type_ for bound in bounds])[:, None]
    return BoundRows(
        concerned * on_type * acts.scale,
        np.array([bound.least for bound in bounds]),
        np.array([bound.most for bound in bounds]),
    )
