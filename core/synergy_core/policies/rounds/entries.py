"""The shares of an allocation matrix as entries: jobs and pairs of jobs on the GPU types on which they have time.

A placement-sensitive job may have two entries on one type: packed, and spread.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.snapshot import Job
from synergy_core.policies.allocation.problem import Problem
from synergy_core.policies.queue import Queue
from synergy_core.policies.rounds.turns import Shares

Ways = Sequence[tuple[int, float]]
"""How a job spends its time on a type: with which other job (an index; alone: -1), for what fraction of the time."""

_LEAST = 1e-6
"""A share of the time below this is a solver's rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """E entries by arrival and name of the job, then by name of the partner, then by column. Jobs are indices."""

    column: Ints
    """E: column of X: a type, or a placement on it."""
    job: Ints
    """E: the job; of a pair, the first."""
    partner: Ints
    """E: the partner, where the only way is a pair; else -1."""
    alone: npt.NDArray[np.bool_]
    """E: the job alone is one of the ways."""
    shares: Shares
    several: Mapping[int, Ways]
    """The ways of entries that have more than one."""

    def ways(self, entry: int) -> Ways:
        """All ways of an entry."""
        return self.several.get(entry) or ((int(self.partner[entry]), float(self.shares.share[entry])),)


class Time:
    """What follows from X and its problem alone, in whatever round."""

    def __init__(self, jobs: Sequence[Job], problem: Problem, x: Floats) -> None:
        """`x`: rows x C."""
        self.row, self.column = np.nonzero(x > _LEAST)
        self.share = x[self.row, self.column]
        alone = np.stack([np.arange(len(jobs)), np.full(len(jobs), -1)], axis=1)
        self.both = (np.concatenate([alone, problem.pairs]) if len(problem.pairs) else alone)[self.row]
        """N x 2: the job and its partner; -1: none."""
        self.whole = np.zeros((len(jobs), len(problem.columns)))
        """J x C: the time of each job, alone and in pairs."""
        if len(problem.pairs):
            each = np.where(self.both >= 0, self.share[:, None], 0.0)
            np.add.at(self.whole, (self.both.ravel(), np.repeat(self.column, 2)), each.ravel())
        else:
            self.whole[self.row, self.column] = self.share
        self.gpus, self.type_ = problem.scale[self.both[:, 0]], problem.column_type[self.column]


def entries_of(
    queue: Queue, jobs: Sequence[Job], problem: Problem, time: Time, pressed: npt.NDArray[np.bool_], *, accounting: bool
) -> Entries:
    """The entries of an X. Those of `pressed` jobs (J) are served before all others.

    In an accounting round (`turns`) there is one entry for each job in each column, with all ways in which it spends
    its time there. Otherwise there is one for each job alone and one for each pair.
    """
    row, column, share = time.row, time.column, time.share
    owed = _owed(queue, jobs, problem, time.whole)
    job, partner = time.both.T
    if not len(problem.pairs):
        shares = Shares(share, owed[job, column], time.gpus, time.type_, row, pressed[job])
        return Entries(column, job, partner, partner < 0, shares, {})
    if accounting:
        return _accounting(jobs, problem, (time.both, column, share), (time.whole, owed), pressed)
    priority = np.where(partner >= 0, 0.5 * (owed[job, column] + owed[partner, column]), owed[job, column])
    presses = pressed[job] | (pressed[partner] & (partner >= 0))
    order = _in_order(jobs, job, partner, column)
    shares = Shares(
        share=share[order],
        priority=priority[order],
        gpus=time.gpus[order],
        type_=time.type_[order],
        row=row[order],
        pressed=presses[order],
    )
    return Entries(column[order], job[order], partner[order], partner[order] < 0, shares, {})


def _accounting(
    jobs: Sequence[Job],
    problem: Problem,
    rows: tuple[Ints, Ints, Floats],
    sums: tuple[Floats, Floats],
    pressed: npt.NDArray[np.bool_],
) -> Entries:
    """One entry for each job in each column, from rows of X (both jobs, column, share). `sums`, J x C: X and X / f."""
    whole, owed = sums
    found: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for (one, other), where, part in zip(*(values.tolist() for values in rows), strict=True):
        found.setdefault((one, where), []).append((other, part))
        if other >= 0:
            found.setdefault((other, where), []).append((one, part))
    job, column = np.array(list(found), dtype=np.int64).reshape(-1, 2).T
    ways = list(found.values())
    partner = np.array([each[0][0] if len(each) == 1 else -1 for each in ways], dtype=np.int64)
    order = _in_order(jobs, job, partner, column)
    job, column, partner = job[order], column[order], partner[order]
    ways = [ways[index] for index in order.tolist()]
    return Entries(
        column,
        job,
        partner,
        np.array([each[0][0] < 0 for each in ways], dtype=bool),
        Shares(
            share=whole[job, column],
            priority=owed[job, column],
            gpus=problem.scale[job],
            type_=problem.column_type[column],
            row=job,
            pressed=pressed[job],
        ),
        {entry: each for entry, each in enumerate(ways) if len(each) > 1},
    )


def _in_order(jobs: Sequence[Job], job: Ints, partner: Ints, column: Ints) -> Ints:
    """Entries in their order. The jobs are in that of arrival and name already."""
    place = np.empty(len(jobs), dtype=np.int64)
    place[sorted(range(len(jobs)), key=lambda index: jobs[index].name)] = np.arange(len(jobs))
    return np.lexsort((column, np.where(partner >= 0, place[partner], -1), job))


def _owed(queue: Queue, jobs: Sequence[Job], problem: Problem, whole: Floats) -> Floats:
    """J x C: X / f of each job in each column. Of the columns beside the first of a type, the time in all of them
    counts."""
    types = len(problem.types)
    received = [job.received_s for job in jobs]
    spent = np.array([[each.get(gpu_type, 0.0) for gpu_type in problem.types] for each in received])
    if len(problem.columns) > types:
        spent = np.concatenate([spent, np.zeros((len(jobs), len(problem.columns) - types))], axis=1)
    for type_ in sorted(set(problem.column_type[types:].tolist())):
        columns = types + np.flatnonzero(problem.column_type[types:] == type_)
        split = problem.throughputs[:, columns] > 0
        far = np.array([job.received_spread_s.get(problem.types[type_], 0.0) for job in jobs])
        spent[:, columns] = far[:, None] * split
        spent[:, type_] -= far * split.any(axis=1)
    life = np.maximum(0.0, queue.now - np.array([job.arrival_s for job in jobs])) + queue.round_s
    return np.asarray(whole * life[:, None] / (spent + 0.5 * queue.round_s))
