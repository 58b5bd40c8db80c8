"""First in, first out on several types (Gavel, section 4.2):

    maximise_X  sum_m  throughput(m, X) / throughput(m, X^fastest) * (M - m)

Jobs are numbered from 0 in the order of arrival (in the order given where they arrived together), M being their number:
so the first counts M times, the last once.
"""

import numpy as np

from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.policies.linear import maximise
from synergy_core.policies.allocation.policy import Found, Policy
from synergy_core.policies.allocation.problem import Problem, effective_throughput
from synergy_core.policies.allocation.shares import fastest_throughput


def value(problem: Problem) -> Floats:
    """J: (M - m) / throughput(m, X^fastest)."""
    jobs = len(problem.jobs)
    left = np.empty(jobs)
    left[np.argsort(problem.arrival, kind="stable")] = np.arange(jobs, 0, -1)
    return left / fastest_throughput(problem)


def objective(problem: Problem, x: Floats) -> float:
    """The sum of section 4.2."""
    return float(value(problem) @ effective_throughput(problem, x))


def allocate(problem: Problem, budget: Budget) -> Found:
    """See the module."""
    return maximise(problem, value(problem), budget)


POLICY = Policy(allocate, objective, "the first of M jobs counts M times, the last once")
