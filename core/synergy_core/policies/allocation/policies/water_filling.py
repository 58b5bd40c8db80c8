"""Max-min fairness with water filling (Gavel, section 4.3, last paragraph): Pareto efficient.

The smallest weighted normalised throughput is that of `max_min_fairness`; of all such X this one has the largest second
smallest, and so on.
"""

from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.policies import max_min_fairness
from synergy_core.policies.allocation.policies.max_min_fairness import unit_throughput
from synergy_core.policies.allocation.policy import Found, Policy
from synergy_core.policies.allocation.problem import Problem
from synergy_core.policies.allocation.programme.progressive_filling import fill_each


def allocate(problem: Problem, budget: Budget) -> Found:
    """See the module."""
    return fill_each(problem, unit_throughput(problem), budget)


POLICY = Policy(allocate, max_min_fairness.objective, max_min_fairness.NORMALISATION)
