"""AlloX (Le et al., EuroSys 2020), the baseline of Gavel's evaluation (section 7.3): smallest average completion time.

Each worker runs jobs one after another. A job that is k-th from the end on a worker of type j delays k jobs by its
steps / throughput, itself included. The assignment of jobs to (type, k) with the smallest sum is a transportation
problem. It has as many k of type j as the type has workers. The first job on each worker runs now, all the time.

AlloX knows jobs of one worker only. A job with more workers stands for all of them (its time counts as often). It gets
them while they last, the shortest job first. If a due job does not fit beside those before it, it gets free workers of
another type, the one on which it is fastest. A job that needs more workers than any usable type has gets none.
"""

import numpy as np

from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.snapshot import FieldError
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.policies import max_min_fairness
from synergy_core.policies.allocation.policy import Found, Policy, on_columns, steps_of
from synergy_core.policies.allocation.problem import Problem
from synergy_core.policies.allocation.shares import best_throughputs


def durations(problem: Problem) -> Floats:
    """J x W: seconds that a job needs on each type alone; infinite where it cannot run or has too few workers."""
    steps = steps_of(problem, "allox")
    speed = best_throughputs(problem) * (problem.workers > 0) * (problem.scale[:, None] <= problem.workers)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(speed > 0, steps[:, None] / speed, np.inf))


def allocate(problem: Problem, budget: Budget) -> Found:
    """See the module."""
    del budget  # one assignment, solved exactly
    seconds = durations(problem)
    shares = np.zeros(seconds.shape)
    able = np.flatnonzero(np.isfinite(seconds).any(axis=1))
    note = f"{len(seconds) - len(able)} jobs need more workers than any type has" if len(able) < len(seconds) else ""
    if not len(able):
        return Found(on_columns(problem, shares), "heuristic", note, value=np.inf)
    type_, place = _assign((seconds * problem.scale[:, None])[able], problem.workers)
    until_done = seconds[able, type_]
    order = np.lexsort((able, until_done, -place))
    free, turns = problem.workers.copy(), np.zeros(len(problem.types))
    late = []
    for job, mine in zip(able[order].tolist(), type_[order].tolist(), strict=True):
        turns[mine] += 1
        if not _given(job, mine, problem.scale, free, shares) and turns[mine] <= problem.workers[mine]:
            late.append(job)
    for job in late:
        for other in np.argsort(seconds[job], kind="stable").tolist():
            if np.isfinite(seconds[job, other]) and _given(job, other, problem.scale, free, shares):
                break
    return Found(on_columns(problem, shares), "heuristic", note, value=float((place * until_done).mean()))


def _given(job: int, type_: int, scale: Floats, free: Floats, shares: Floats) -> bool:
    """Give a job its workers of a type for all the time, if they are free."""
    if scale[job] > free[type_]:
        return False
    free[type_] -= scale[job]
    shares[job, type_] = 1.0
    return True


def _assign(cost: Floats, workers: Floats) -> tuple[Ints, Ints]:
    """J types and J places from the end (1 is the last) with the smallest sum of place * cost."""
    known = on_one_type(cost[:, 0], int(workers[0])) if len(workers) == 1 else None
    return by_assignment(cost, workers) if known is None else known


def on_one_type(cost: Floats, count: int) -> tuple[Ints, Ints] | None:
    """What `by_assignment` finds on one type: the longest jobs run last. None where equally long jobs get different
    places, since any of them could have either."""
    if count < 1:
        return None
    order = np.argsort(-cost, kind="stable")
    sorted_ = cost[order]
    first = np.arange(count, len(cost), count)
    if (sorted_[first - 1] == sorted_[first]).any():
        return None
    places = np.empty(len(cost), dtype=np.int64)
    places[order] = np.arange(len(cost)) // count + 1
    return np.zeros(len(cost), dtype=np.int64), places


def by_assignment(cost: Floats, workers: Floats) -> tuple[Ints, Ints]:
    """The same by an assignment of jobs to (type, place). Its time and memory grow with the square of the jobs."""
    try:
        from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - only this policy needs it
    except ImportError as error:
        raise FieldError("policy", "allox needs scipy; pip install 'kube-synergy[solver]'") from error
    jobs = len(cost)
    count = np.minimum(np.floor(workers), jobs).astype(np.int64)
    most = -(-jobs // np.maximum(count, 1))
    types = np.repeat(np.arange(len(workers)), count * most)
    places = np.concatenate([np.repeat(np.arange(1, k + 1), n) for n, k in zip(count, most, strict=True)])
    _, chosen = linear_sum_assignment(cost[:, types] * places)
    return types[chosen], places[chosen]


POLICY = Policy(
    allocate,
    max_min_fairness.objective,
    "seconds until a job is done, on average, in AlloX's own assignment",
    solver="SCIPY",
    less_is_better=True,
    shares=False,
)
