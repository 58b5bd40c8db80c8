"""The isolated allocation: every job has 1/n of the workers of each type (Gavel, section 4.1)."""

from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.policies import max_min_fairness
from synergy_core.policies.allocation.policy import Found, Policy, on_columns
from synergy_core.policies.allocation.problem import Problem
from synergy_core.policies.allocation.shares import isolated_shares


def allocate(problem: Problem, budget: Budget) -> Found:
    """See the module."""
    del budget  # no programme is solved
    return Found(on_columns(problem, isolated_shares(problem)), "heuristic")


POLICY = Policy(
    allocate, max_min_fairness.objective, max_min_fairness.NORMALISATION, solver="closed-form", shares=False
)
