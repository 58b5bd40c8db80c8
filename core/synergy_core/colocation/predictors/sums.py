"""The thesis' predictor: linear in the sums of the jobs' compute and bandwidth (section 4.2.4, algorithm 2)."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from synergy_core.colocation.predictors.of_pairs import PairFractions
from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.measurement import LEAST, Observation, SharedMeasurement
from synergy_core.model.usage import Usage, together


@dataclass(frozen=True, slots=True)
class LinearSums:
    """Every job's fraction is `base` + `compute` x sum of compute + `bandwidth` x sum of bandwidth."""

    base: float
    compute: float
    bandwidth: float
    counters: bool = False
    """Fitted to GPU counters, not to utilisation."""

    def fractions(self, usages: Sequence[Usage]) -> tuple[float, ...]:
        """The fraction of each job: the same for all."""
        if len(usages) < 2:
            return (1.0,) * len(usages)
        compute, bandwidth = together(tuple(usage.seen_by(counters=self.counters) for usage in usages))
        value = max(LEAST, self.base + self.compute * compute + self.bandwidth * bandwidth)
        return (value,) * len(usages)

    def of_pairs(self, usages: Sequence[Usage]) -> PairFractions:
        """`fractions` of many pairs of jobs with these usages."""
        seen = [usage.seen_by(counters=self.counters) for usage in usages]
        compute = np.array([usage.compute for usage in seen], dtype=float)
        bandwidth = np.array([usage.bandwidth for usage in seen], dtype=float)

        def fractions(two: Ints) -> Floats:
            of_both = self.base + self.compute * compute[two].sum(axis=0) + self.bandwidth * bandwidth[two].sum(axis=0)
            return np.broadcast_to(np.maximum(LEAST, of_both), two.shape)

        return fractions

    def corrected(self, _observations: Sequence[Observation]) -> "LinearSums":
        """Itself: it knows nothing of single jobs."""
        return self

    def corrections(self, _observations: Sequence[Observation]) -> Mapping[str, Hashable]:
        """None (`by_models.CorrectedByModels`)."""
        return {}


def fit_sums(measurements: Sequence[SharedMeasurement], *, counters: bool = False) -> LinearSums:
    """Least squares over all jobs of all measurements, whose usages are counters' or utilisation. Raises ValueError
    where there are fewer than three."""
    if len(measurements) < 3:
        raise ValueError(f"{len(measurements)} measurements are too few for three coefficients; give at least three")
    rows = [(1.0, *together(one.usages)) for one in measurements for _ in one.fractions]
    values = [fraction for one in measurements for fraction in one.fractions]
    found, *_ = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)
    base, compute, bandwidth = (float(value) for value in found)
    return LinearSums(base, compute, bandwidth, counters)
