"""Shortest job first (Gavel, section 4.2): minimise_X min_m num_steps_m / throughput(m, X).

The optimum gives the job that could be done soonest its fastest types, and leaves the others open. They are served in
the same way with what is left, in the order in which they could be done soonest. Pairs are not used: the job that is
served first is no faster if it shares.
"""

import numpy as np

from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.policy import Found, Policy, steps_of
from synergy_core.policies.allocation.problem import Problem, effective_throughput, within_bounds


def objective(problem: Problem, x: Floats) -> float:
    """Seconds until the first job is done."""
    steps, speed = steps_of(problem, "sjf"), effective_throughput(problem, x)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(steps > 0, steps / speed, 0.0).min())


def allocate(problem: Problem, budget: Budget) -> Found:
    """See the module."""
    del budget  # no programme is solved
    steps = steps_of(problem, "sjf")
    soonest = np.array([_duration(problem, job, steps[job], problem.workers) for job in range(len(problem.jobs))])
    x = np.zeros((problem.rows, len(problem.columns)))
    free = problem.workers.copy()
    for job in np.argsort(soonest, kind="stable"):
        x[job] = _fastest(problem, job, free)
        np.subtract.at(free, problem.column_type, x[job] * problem.scale[job])
        np.maximum(free, 0.0, out=free)
        if not free.any():
            break
    return Found(within_bounds(problem, x))


def _duration(problem: Problem, job: int, steps: float, free: Floats) -> float:
    return float(steps / (problem.throughputs[job] @ _fastest(problem, job, free)))


def _fastest(problem: Problem, job: int, free: Floats) -> Floats:
    """C: the whole time of a job on its fastest columns, as far as free workers (W) go."""
    shares = np.zeros(len(problem.columns))
    left, time = free.copy(), 1.0
    for column in np.argsort(-problem.throughputs[job], kind="stable"):
        type_ = problem.column_type[column]
        if problem.throughputs[job, column] <= 0 or time <= 0:
            break
        shares[column] = min(time, left[type_] / problem.scale[job])
        left[type_] -= shares[column] * problem.scale[job]
        time -= shares[column]
    return shares


POLICY = Policy(allocate, objective, "seconds", solver="closed-form", less_is_better=True, shares=False)
