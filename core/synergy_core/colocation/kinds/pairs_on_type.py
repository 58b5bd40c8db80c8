"""What the two jobs of each pair keep on one GPU of a type."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from synergy_core.colocation.grouping import WORTH, Grouping
from synergy_core.colocation.kinds.fitting import Fitting
from synergy_core.colocation.kinds.members import Members, MemberTerms
from synergy_core.colocation.predictors.of_pairs import of_pairs
from synergy_core.model.arrays import Bools, Floats, Ints
from synergy_core.model.snapshot import Job
from synergy_core.throughput.threads import ceiling, measured_with

_BLOCK: Final = 1 << 12
"""Pairs: so many at a time, as the arrays between are then small enough for the processor's cache."""


class PairsOnType:
    """Of K jobs that may share GPUs of the type, at least one."""

    def __init__(self, grouping: Grouping, gpu_type: str, jobs: Sequence[Job], terms: Sequence[MemberTerms]) -> None:
        rules = grouping.rules
        self._jobs, self._gpu_type = jobs, gpu_type
        self._fitting = Fitting(jobs, gpu_type, rules.shared_nodes(gpu_type))
        self._members = Members(jobs, terms)
        self._have = grouping.pools[gpu_type].least_share
        self._alone = np.array([grouping.alone(job, gpu_type) for job in jobs])
        self._predicted = of_pairs(rules.predictor(gpu_type), [job.usage[gpu_type] for job in jobs])
        self._limits: dict[int, tuple[Floats, Floats]] = {}

    def kept(self, two: Ints) -> Floats:
        """2 x P: what each of two keeps beside the other (`Grouping.together`); 0 where they may not share, cannot, or
        gain too little by it."""
        kept = np.zeros(two.shape)
        for start in range(0, two.shape[1], _BLOCK):
            block = slice(start, start + _BLOCK)
            kept[:, block] = self._kept(two[:, block])
        return kept

    def _kept(self, two: Ints) -> Floats:
        kept = np.zeros(two.shape)
        threads = self._fitting.threads(two)
        left = np.flatnonzero(threads)
        fractions = self._fractions(two[:, left], threads[left])
        # most of those that gain nothing are found out by what the GPU alone leaves them
        gaining = self._gain(two[:, left], self._members.at_most(two[:, left], fractions))
        left, fractions = left[gaining], fractions[:, gaining]
        some = two[:, left]
        parts = self._members.parts(some, self._members.demand(some, fractions), self._have)
        each = self._members.kept(some, fractions, parts)
        can = self._members.serves(some, parts).all(axis=0) & self._gain(some, each)
        kept[:, left] = np.where(can, each, 0.0)
        return kept

    def _fractions(self, two: Ints, threads: Ints) -> Floats:
        """`Rules.predicted`, where nodes leave the pairs so many threads."""
        predicted = self._predicted(two)
        fractions = np.zeros(two.shape)
        for percent in np.unique(threads).tolist():
            alike = np.flatnonzero(threads == percent)
            most, measured = self._limit(percent)
            some = two[:, alike]
            fractions[:, alike] = np.minimum(1.0, np.minimum(most[some], predicted[:, alike]) / measured[some])
        return fractions

    def _limit(self, percent: int) -> tuple[Floats, Floats]:
        """What such a percentage of the threads leaves each job, and what of its best speed is known (`threads`)."""
        if percent not in self._limits:
            most = np.array([ceiling(job.usage[self._gpu_type], percent) for job in self._jobs])
            measured = np.array([measured_with(job, self._gpu_type, percent) for job in self._jobs])
            self._limits[percent] = most, measured
        return self._limits[percent]

    def _gain(self, two: Ints, each: Floats) -> Bools:
        """Together they keep more than one of them alone, by what sharing must gain."""
        alone = np.maximum(self._alone.take(two[0]), self._alone.take(two[1]))
        return np.asarray(each[0] + each[1] > alone + WORTH)
