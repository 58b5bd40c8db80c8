"""Percentiles of samples, and of Prometheus histograms as the extender shows them. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that `share` of all (0 < share <= 1) do not exceed (nearest rank). Raises ValueError without
    samples."""
    if not samples:
        raise ValueError("no samples")
    return sorted(samples)[max(0, math.ceil(share * len(samples)) - 1)]


@dataclass(frozen=True)
class Histogram:
    """Counts of values by the upper bound of their bucket, each count with all smaller ones; the values' sum."""

    buckets: Mapping[float, float] = field(default_factory=dict)
    total: float = 0.0

    @property
    def count(self) -> int:
        """How many values."""
        return int(self.buckets.get(math.inf, 0))

    @property
    def mean(self) -> float | None:
        """Their mean, None without values."""
        return self.total / self.count if self.count else None

    def since(self, before: "Histogram") -> "Histogram":
        """What came after `before` was read."""
        buckets = {bound: count - before.buckets.get(bound, 0) for bound, count in self.buckets.items()}
        return Histogram(buckets, self.total - before.total)

    def percentile(self, share: float) -> float | None:
        """Interpolated within its bucket as Prometheus' histogram_quantile does; the last finite bound at most; None
        without values."""
        rank, below, bound_below = share * self.count, 0.0, 0.0
        for bound in sorted(self.buckets):
            count = self.buckets[bound]
            if count >= rank and count > below:
                if math.isinf(bound):
                    return bound_below
                return bound_below + (bound - bound_below) * (rank - below) / (count - below)
            below, bound_below = count, bound
        return None


def histogram(exposition: str, name: str, **labels: str) -> Histogram:
    """The histogram of that name and labels in Prometheus' text format; an empty one where it is not there."""
    buckets: dict[float, float] = {}
    total = 0.0
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples if family.name == name else ():
            if any(sample.labels.get(label) != value for label, value in labels.items()):
                continue
            if sample.name == f"{name}_bucket":
                buckets[float(sample.labels["le"])] = sample.value
            elif sample.name == f"{name}_sum":
                total = sample.value
    return Histogram(buckets, total)


def counter(exposition: str, name: str) -> float:
    """A counter, the sum over its labels; 0 where it is not there. `name` is without `_total`."""
    return sum(
        float(sample.value)
        for family in text_string_to_metric_families(exposition)
        if family.name == name
        for sample in family.samples
        if sample.name == f"{name}_total"
    )
