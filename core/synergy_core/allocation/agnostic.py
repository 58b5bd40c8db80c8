"""Heterogeneity-agnostic versions of the policies: what Gavel is compared with.

An agnostic scheduler has one speed for each job, whatever it runs on. Here that is the mean over all workers the job
can use, so that times (steps / throughput) keep their size. Types that the same jobs can use are then one pool of
workers to it; what a job gets of the pool is spread over its types in proportion to their workers. That a job cannot
run on some type at all is known to any scheduler, and kept.
"""

from dataclasses import replace

import numpy as np

from synergy_core.allocation.policy import on_columns
from synergy_core.allocation.problem import Floats, Ints, Problem
from synergy_core.allocation.shares import best_throughputs


def agnostic(problem: Problem) -> Problem:
    """The problem as an agnostic scheduler sees it, with a type for each pool; `spread` its solution."""
    pool = _pools(problem)
    first = np.unique(pool, return_index=True)[1]
    pools = len(first)
    workers = np.asarray(np.bincount(pool, weights=problem.workers, minlength=pools), dtype=float)
    best = best_throughputs(problem)
    can = (best > 0) & (problem.workers > 0)
    speed = (best * problem.workers).sum(axis=1) / np.maximum((can * problem.workers).sum(axis=1), 1e-300)
    paid = np.nan_to_num(problem.cost) * problem.workers
    cost = np.bincount(pool, weights=paid, minlength=pools) / np.maximum(workers, 1e-300)
    unknown = np.bincount(pool, weights=np.isnan(problem.cost) & (problem.workers > 0), minlength=pools) > 0
    return replace(
        problem,
        types=tuple(problem.types[index] for index in first),
        workers=workers,
        columns=tuple(problem.types[index] for index in first),
        column_type=np.arange(pools),
        throughputs=np.where(can[:, first], speed[:, None], 0.0),
        cost=np.where(unknown, np.nan, cost),
        pair_throughputs=_shared(problem, pool, workers, can, speed),
    )


def spread(problem: Problem, x: Floats) -> Floats:
    """X, rows x C, of an X of the agnostic problem: each pool's time on its types, in proportion to their workers."""
    pool = _pools(problem)
    workers = np.bincount(pool, weights=problem.workers)
    parts = x[:, pool] * (problem.workers / np.maximum(workers[pool], 1e-300))
    jobs = len(problem.jobs)
    spread_out = on_columns(problem, parts[:jobs])
    spread_out[jobs:, : len(problem.types)] = parts[jobs:]
    return spread_out


def evened(problem: Problem, x: Floats) -> Floats:
    """X, rows x pools, of an agnostic problem with each job's time spread over all pools that it can use.

    To an agnostic scheduler any division of a job's time among pools is as good as any other, and a solver's vertex is
    an odd one: with one job of two GPUs that cannot use K80s, all jobs that can would have nothing but K80s. Of the
    divisions that fit this is the one nearest to the pools' workers (in relative entropy; by scaling the pools that are
    too full, which raises no other's scale). What each job has in all is the same, alone as in pairs.
    """
    if len(problem.types) < 2:
        return x
    jobs = len(problem.jobs)
    can = (problem.throughputs > 0) * problem.workers
    alone, together = x[:jobs], x[jobs:]
    room = problem.workers - problem.row_scale()[jobs:] @ together
    even = dealt(alone.sum(axis=1), can, problem.scale, room)
    return np.concatenate([_fitting(problem, alone, even, room), together])


def dealt(whole: Floats, weights: Floats, scale: Floats, room: Floats) -> Floats:
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


def _fitting(problem: Problem, fits: Floats, wanted: Floats, room: Floats) -> Floats:
    """As near to what is wanted as the pools have room, on the way there from what fits."""
    now, then = problem.scale @ fits, problem.scale @ wanted
    over = then - room
    back = float(np.max(np.where(over > 0, over / np.maximum(then - now, 1e-300), 0.0), initial=0.0))
    return np.asarray(wanted + min(1.0, back) * (fits - wanted))


def _pools(problem: Problem) -> Ints:
    """W: types that the same jobs can use have the same number; a type without workers is in a pool with its like."""
    can = (best_throughputs(problem) > 0) & (problem.workers > 0)
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(column.tobytes(), len(numbers)) for column in np.ascontiguousarray(can.T)])


def _shared(problem: Problem, pool: Ints, workers: Floats, can: np.typing.NDArray[np.bool_], speed: Floats) -> Floats:
    """P x pools x 2: each job keeps of its one speed what it keeps on average over the pool's workers."""
    pools = len(workers)
    shared = np.zeros((len(problem.pairs), pools, 2))
    if not len(problem.pairs):
        return shared
    some = np.asarray(can.any(axis=1))
    own = problem.throughputs[:, : len(problem.types)]
    for type_, into in enumerate(pool.tolist()):
        alone = own[:, type_][problem.pairs]
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = np.where(alone > 0, problem.pair_throughputs[:, type_] / alone, 0.0)
        shared[:, into] += kept * (problem.workers[type_] / max(workers[into], 1e-300))
    return shared * speed[problem.pairs][:, None, :] * some[problem.pairs][:, None, :]
