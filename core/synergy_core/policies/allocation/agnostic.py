"""Heterogeneity-agnostic versions of the policies: the baselines of Gavel's evaluation.

An agnostic scheduler has one speed for each job, on whatever type. Here that is the mean over all workers that the job
can use: times (steps / throughput) then keep their scale. Types that the same jobs can use are then one pool of
workers. What a job gets of the pool is spread over its types in proportion to their workers. Any scheduler knows that a
job cannot run on some type at all, so this is kept.
"""

from dataclasses import replace

import numpy as np

from synergy_core.model.arrays import Floats, Ints
from synergy_core.policies.allocation.policy import on_columns
from synergy_core.policies.allocation.problem import Problem
from synergy_core.policies.allocation.programme.transport import MOST_TYPES, Kinds
from synergy_core.policies.allocation.shares import best_throughputs


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
    an odd one: with one job of two GPUs that cannot use K80s, all jobs that can would have nothing but K80s. Here jobs
    that can use the same pools are on each in the same part of their time (`transport.Kinds.parts`). What each job has
    in all is the same, alone as in pairs. With more pools than MOST_TYPES the solver's division stays.
    """
    if not 1 < len(problem.types) <= MOST_TYPES:
        return x
    jobs = len(problem.jobs)
    alone, together = x[:jobs].sum(axis=1), x[jobs:]
    kinds = Kinds(problem.throughputs > 0, np.maximum(problem.workers - problem.row_scale()[jobs:] @ together, 0.0))
    parts = kinds.parts(kinds.asked(problem.scale * alone))[kinds.of]
    return np.concatenate([alone[:, None] * parts, together])


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
