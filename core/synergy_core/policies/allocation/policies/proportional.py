"""Time in proportion to the jobs' weights, on each type in proportion to its workers.

Job m runs a fraction min(1, c w_m) of the time, on type j for workers_j / total workers of that; c is the largest at
which the workers suffice. A job of twice the workers holds twice as many, unlike with `isolated`.
"""

import numpy as np

from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.policies import max_min_fairness
from synergy_core.policies.allocation.policy import Found, Policy, on_columns
from synergy_core.policies.allocation.problem import Problem, within_bounds
from synergy_core.policies.allocation.programme.levels import largest


def allocate(problem: Problem, budget: Budget) -> Found:
    """See the module."""
    del budget  # no programme is solved
    weight, scale, total = problem.weight, problem.scale, problem.workers.sum()
    most = 1.0 / weight.min()
    c = largest(lambda c: float(scale @ np.minimum(1.0, c * weight)) - total, 0.0, most)
    shares = np.minimum(1.0, c * weight)[:, None] * (problem.workers / total)[None, :]
    return Found(within_bounds(problem, on_columns(problem, shares)), "heuristic")


POLICY = Policy(
    allocate, max_min_fairness.objective, max_min_fairness.NORMALISATION, solver="closed-form", shares=False
)
