"""Gandiva's packing, the baseline of Gavel's evaluation (section 7.3): pairs at random, kept where they help.

While the jobs need more workers than there are, two jobs of equal scale factor are drawn. They are packed if the pair
keeps more than one job's worth of speed on the fastest type that both can use. Then every job or packed pair gets the
same part of the workers' time, up to all of its own: one of four workers runs a quarter as long as one of a single
worker. It gets this time on each type in proportion to the type's workers. There is no objective, and throughputs count
only for the question if a drawn pair helps. `seed` determines the draw.
"""

import zlib

import numpy as np

from synergy_core.model.arrays import Floats, Ints
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.policies import max_min_fairness
from synergy_core.policies.allocation.policy import Found, Policy
from synergy_core.policies.allocation.problem import Problem, within_bounds
from synergy_core.policies.allocation.programme.activities import helpful


def allocate(problem: Problem, budget: Budget) -> Found:
    """See the module."""
    del budget  # no programme is solved
    packed = _packed(problem)
    rows = np.setdiff1d(np.arange(len(problem.jobs)), problem.pairs[packed])
    rows = np.concatenate([rows, len(problem.jobs) + packed])
    scale = problem.row_scale()[rows]
    columns = np.stack([_columns(problem, rows, type_) for type_ in range(len(problem.types))], axis=1)
    can = _worthwhile(problem)[rows[:, None], columns]
    time = np.minimum(1.0, problem.workers.sum() / (len(rows) * scale))
    x = np.zeros((problem.rows, len(problem.columns)))
    x[rows[:, None], columns] = _allocated(time, can * problem.workers, scale, problem.workers)
    return Found(within_bounds(problem, x), "heuristic")


def _allocated(whole: Floats, weights: Floats, scale: Floats, room: Floats) -> Floats:
    """Rows x types: `whole` (rows) of the time on types in proportion to `weights` (rows x types), as far as fits.

    `room` (types): workers; where the rows' own division is too much for it, the types that are too full count for less
    with everybody. What does not fit however it is divided is left over the room.
    """
    part = np.ones(len(room))
    even = np.zeros(weights.shape)
    for _ in range(_TIMES):
        parts = weights * part
        even = whole[:, None] * parts / np.maximum(parts.sum(axis=1, keepdims=True), 1e-300)
        full = scale @ even / np.maximum(room, 1e-300)
        if full.max(initial=0.0) <= 1.0 + _CLOSE:
            break
        part = part / np.maximum(full, 1.0)
    return even


_TIMES = 100
_CLOSE = 1e-9


def _packed(problem: Problem) -> Ints:
    """Indices of the pairs that were drawn and help."""
    needed, free = problem.scale.sum(), np.ones(len(problem.jobs), dtype=bool)
    useful = np.asarray(helpful(problem).any(axis=1))
    chosen: list[int] = []
    for pair in np.argsort(_lots(problem), kind="stable").tolist():
        if needed <= problem.workers.sum():
            break
        one, other = problem.pairs[pair].tolist()
        if useful[pair] and free[one] and free[other] and problem.scale[one] == problem.scale[other]:
            chosen.append(pair)
            free[[one, other]] = False
            needed -= problem.scale[one]
    return np.array(sorted(chosen), dtype=np.int64)


def _lots(problem: Problem) -> np.typing.NDArray[np.uint64]:
    """P: a number drawn for each pair from its jobs' names: packed pairs stay packed as others come and go."""
    names = [zlib.crc32(f"{problem.seed}/{job}".encode()) for job in problem.jobs]
    one, other = np.array(names, dtype=np.uint64)[problem.pairs].T
    mixed = (one ^ (other << np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray(mixed ^ (mixed >> np.uint64(29)))


def _worthwhile(problem: Problem) -> np.typing.NDArray[np.bool_]:
    """Rows x C: where a job has a speed, and a pair more than its jobs have in turns."""
    return np.concatenate([problem.throughputs > 0, helpful(problem)])


def _rates(problem: Problem) -> Floats:
    """Rows x C: steps per second of a row, of both jobs where it is a pair."""
    return np.concatenate([problem.throughputs, problem.pair_throughputs.sum(axis=2)])


def _columns(problem: Problem, rows: Ints, type_: int) -> Ints:
    """The faster placement of each row on a type."""
    columns = np.flatnonzero(problem.column_type == type_)
    return np.asarray(columns[np.argmax(_rates(problem)[rows][:, columns], axis=1)])


POLICY = Policy(allocate, max_min_fairness.objective, max_min_fairness.NORMALISATION, solver="closed-form")
