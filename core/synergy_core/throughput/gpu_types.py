"""Estimates speeds on GPU types that a job was never measured on (Gavel, sections 3.3 and 6, figure 8).

Known of a job are the speeds at its GPU-proportional share on some types, and how these depend on CPU. Its fingerprint
is all of that, relative to the job's own size and to what is usual on each type. Matrix completion fills in what was
not measured.

A reference job was measured on the type in question, and on one on which the job was measured too. The reference with
the nearest fingerprint stands for the job: the job gains from type to type what the reference gains. Where all jobs
gain alike (a matrix of rank 1) the estimate is exact.

References that train the same model predict better than any fingerprint. Where there are some, only they count: those
with as many GPUs, or the nearest number. Of these, the two with the next smaller and the next larger batch are
averaged, by the distance of the logarithms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from sys import float_info

import numpy as np

from synergy_core.model.arrays import Floats
from synergy_core.throughput.completion import completed

AT_SHARE = 1.0
"""The GPU-proportional share itself, as the CPU of a `Place`."""
_MEASURED = 8.0
"""Weight of an entry of a fingerprint that was measured, beside those that were filled in."""
_LEAST, _MOST = log(float_info.min), log(float_info.max)
"""Logarithms of speeds that a number can hold."""
_HALF = 0.5
_ALIKE = 1e-9
"""Fingerprints that differ by less, squared and on average, are the same: what is left is rounding."""

Place = tuple[str, float]
"""A GPU type, and the CPU as a multiple of the GPU-proportional share (`AT_SHARE`: the share itself)."""


@dataclass(frozen=True, slots=True)
class Known:
    """What was measured of one job: steps per second, above 0, with at least one at its share."""

    name: str
    gpus: int
    speeds: Mapping[Place, float]
    model: str = ""
    """What it trains, whatever the batch size; empty: not known."""
    batch: float | None = None
    """Samples that a GPU takes in a step, above 0."""

    @property
    def types(self) -> frozenset[str]:
        """The GPU types on which its speed at its share was measured."""
        return frozenset(gpu_type for gpu_type, cpu in self.speeds if cpu == AT_SHARE)


@dataclass(frozen=True, slots=True)
class Estimated:
    """Estimated steps per second, and the reference job."""

    steps_per_s: float
    reference: str


def estimated(jobs: Sequence[Known], wanted: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Estimated]]:
    """By job and GPU type, for the types that are `wanted` of each job (by name).

    Types for which there is no reference are left out, and so are types that the job was measured on: an estimate never
    replaces a measurement; and estimates that no number can hold. Deterministic, whatever the order of the jobs.
    """
    rows = [job for job in sorted(jobs, key=lambda job: job.name) if wanted.get(job.name) or len(job.types) > 1]
    asking = [index for index, job in enumerate(rows) if wanted.get(job.name)]
    if not asking:
        return {}
    prints, measured = _fingerprints(rows)
    names = sorted({gpu_type for job in rows for gpu_type in job.types})
    on_types = np.array([[gpu_type in job.types for gpu_type in names] for job in rows])
    doublings = np.log2([job.gpus for job in rows])
    found: dict[str, dict[str, Estimated]] = {}
    for index in asking:
        weights = np.where(measured[index], _MEASURED, 1.0)
        apart = ((prints - prints[index]) ** 2 * weights).sum(axis=1) / weights.sum()
        nearest_first = np.lexsort((np.abs(doublings - doublings[index]), np.round(apart / _ALIKE)))
        comparable = (on_types & on_types[index]).any(axis=1)[nearest_first]
        for gpu_type in sorted(set(wanted[rows[index].name]) & set(names) - rows[index].types):
            able = nearest_first[comparable & on_types[nearest_first, names.index(gpu_type)]]
            if len(able):
                one = _estimate(rows[index], [rows[each] for each in able], gpu_type)
                if one is not None:
                    found.setdefault(rows[index].name, {})[gpu_type] = one
    return found


def _estimate(job: Known, references: Sequence[Known], gpu_type: str) -> Estimated | None:
    """The job's speed by these references, the nearest first; None where that is beyond all numbers."""
    speed, reference = _by_its_model(job, references, gpu_type) or (_like(job, references[0], gpu_type), references[0])
    return Estimated(exp(speed), reference.name) if _LEAST <= speed <= _MOST else None


def _like(job: Known, reference: Known, gpu_type: str) -> float:
    """Logarithm of the job's speed if it gains from type to type what the reference gains."""
    both = sorted(job.types & reference.types)
    gains = [log(job.speeds[known, AT_SHARE]) - log(reference.speeds[known, AT_SHARE]) for known in both]
    return log(reference.speeds[gpu_type, AT_SHARE]) + sum(gains) / len(gains)


def _by_its_model(job: Known, references: Sequence[Known], gpu_type: str) -> tuple[float, Known] | None:
    """The same by references that train its model, and the nearest of them; None where there are none."""
    own = [one for one in references if job.model and one.model == job.model]
    if not own:
        return None
    least = min(_apart(one.gpus, job.gpus) for one in own)
    own = [one for one in own if _apart(one.gpus, job.gpus) == least]
    batched = {one.batch: one for one in reversed(own) if one.batch is not None}
    if job.batch is None or not batched:
        return _like(job, own[0], gpu_type), own[0]
    smaller = batched[max((batch for batch in batched if batch <= job.batch), default=min(batched))]
    larger = batched[min((batch for batch in batched if batch >= job.batch), default=max(batched))]
    below, above = (_apart(job.batch, one.batch or job.batch) for one in (smaller, larger))
    part = below / (below + above) if below + above > 0.0 and smaller is not larger else 0.0
    speed = (1.0 - part) * _like(job, smaller, gpu_type) + part * _like(job, larger, gpu_type)
    return speed, larger if part > _HALF else smaller


def _apart(one: float, other: float) -> float:
    """How far apart two numbers are, whichever is the larger."""
    return abs(log(one) - log(other))


def _fingerprints(rows: Sequence[Known]) -> tuple[Floats, np.typing.NDArray[np.bool_]]:
    """The fingerprint of each job (jobs x places), and which of its entries were measured."""
    places = sorted({place for job in rows for place in job.speeds})
    logs = np.log(np.array([[job.speeds.get(place, np.nan) for place in places] for job in rows]))
    known = ~np.isnan(logs)
    rest = np.where(known, logs - _usual(np.where(known, logs, 0.0), known), np.nan)
    rest -= (np.nansum(rest, axis=1) / known.sum(axis=1))[:, None]
    size = float(np.sqrt(np.nanmean(rest**2)))
    return (completed(rest / size) if size > _ALIKE else np.zeros(rest.shape)), known


def _usual(logs: Floats, known: np.typing.NDArray[np.bool_]) -> Floats:
    """What is usual in each place: the second of two terms, job plus place, that are nearest to all known entries."""
    weights = known.astype(float)
    parts = weights / weights.sum(axis=1)[:, None]
    equations = np.diag(weights.sum(axis=0)) - weights.T @ parts
    right = logs.sum(axis=0) - parts.T @ logs.sum(axis=1)
    return np.asarray(np.linalg.lstsq(equations, right, rcond=None)[0])
