"""The allocations that policies measure against: equal, isolated, fastest."""

import numpy as np

from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation.problem import Problem


def best_throughputs(problem: Problem) -> Floats:
    """J x W: steps per second on each type, in the better placement where a type has several."""
    best: Floats = problem.throughputs[:, : len(problem.types)].copy()
    for column in range(len(problem.types), len(problem.columns)):
        type_ = problem.column_type[column]
        best[:, type_] = np.maximum(best[:, type_], problem.throughputs[:, column])
    return best


def equal_share_throughput(problem: Problem) -> Floats:
    """throughput(m, X^equal), J steps per second: the same time share on each worker (section 4.1).

    X^equal of a job is workers_j / total workers on each type j; with 1 V100 and 1 K80 it is (0.5, 0.5).
    """
    return np.asarray(best_throughputs(problem) @ (problem.workers / problem.workers.sum()))


def isolated_shares(problem: Problem) -> Floats:
    """X^isolated, J x W: 1/n of each type's workers, divided by the job's workers, at most the whole time in all."""
    shares = problem.workers[None, :] / (len(problem.jobs) * problem.scale[:, None])
    over: Floats = np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
    return np.asarray(shares / over)


def isolated_throughput(problem: Problem) -> Floats:
    """throughput(m, X^isolated), J steps per second."""
    return np.asarray(np.einsum("jw,jw->j", best_throughputs(problem), isolated_shares(problem)))


def fastest_throughput(problem: Problem) -> Floats:
    """throughput(m, X^fastest), J steps per second: all the time on the fastest type (section 4.2, FIFO)."""
    fastest: Floats = (problem.throughputs * (problem.workers[problem.column_type] > 0)).max(axis=1)
    return fastest
