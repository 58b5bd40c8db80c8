"""Gandiva's packing, the baseline of Gavel's evaluation (section 7.3): pairs at random, kept where they help.

While the jobs need more workers than there are, two jobs of equal scale factor are drawn; where a pair of them keeps
more than one job's worth of speed on the fastest type that both can use they are packed. Then every job or packed
pair has the same part of the time, as far as the workers go, on each type in proportion to its workers: no objective,
no throughput looked at but whether a drawn pair helps. The draw is that of `seed`.
"""

import numpy as np

from synergy_core.allocation.activities import helpful
from synergy_core.allocation.budget import Budget
from synergy_core.allocation.policies import max_min_fairness
from synergy_core.allocation.policy import Found, Policy
from synergy_core.allocation.problem import Floats, Ints, Problem, within_bounds


def allocate(problem: Problem, budget: Budget) -> Found:
    """See the module."""
    del budget  # no programme is solved
    packed = _packed(problem)
    rows = np.setdiff1d(np.arange(len(problem.jobs)), problem.pairs[packed])
    rows = np.concatenate([rows, len(problem.jobs) + packed])
    scale = problem.row_scale()[rows]
    time = min(1.0, problem.workers.sum() / scale.sum())
    x = np.zeros((problem.rows, len(problem.columns)))
    for type_, workers in enumerate(problem.workers):
        x[rows, _columns(problem, rows, type_)] = time * workers / problem.workers.sum()
    return Found(within_bounds(problem, x * (_rates(problem) > 0)), "heuristic")


def _packed(problem: Problem) -> Ints:
    """Indices of the pairs that were drawn and help."""
    rng = np.random.default_rng(problem.seed)
    needed, free = problem.scale.sum(), np.ones(len(problem.jobs), dtype=bool)
    useful = np.asarray(helpful(problem).any(axis=1))
    chosen: list[int] = []
    for pair in rng.permutation(len(problem.pairs)).tolist():
        if needed <= problem.workers.sum():
            break
        one, other = problem.pairs[pair].tolist()
        if useful[pair] and free[one] and free[other] and problem.scale[one] == problem.scale[other]:
            chosen.append(pair)
            free[[one, other]] = False
            needed -= problem.scale[one]
    return np.array(sorted(chosen), dtype=np.int64)


def _rates(problem: Problem) -> Floats:
    """Rows x C: steps per second of a row, of both jobs where it is a pair."""
    return np.concatenate([problem.throughputs, problem.pair_throughputs.sum(axis=2)])


def _columns(problem: Problem, rows: Ints, type_: int) -> Ints:
    """The faster placement of each row on a type."""
    columns = np.flatnonzero(problem.column_type == type_)
    return np.asarray(columns[np.argmax(_rates(problem)[rows][:, columns], axis=1)])


POLICY = Policy(allocate, max_min_fairness.objective, max_min_fairness.NORMALISATION, solver="closed-form")
