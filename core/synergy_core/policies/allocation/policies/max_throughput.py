"""Largest total throughput (Gavel, section 3.1): maximise_X sum_m throughput(m, X)."""

import numpy as np

from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.policies.linear import maximise
from synergy_core.policies.allocation.policy import Found, Policy
from synergy_core.policies.allocation.problem import Problem, effective_throughput


def objective(problem: Problem, x: Floats) -> float:
    """Steps per second of all jobs together."""
    return float(effective_throughput(problem, x).sum())


def allocate(problem: Problem, budget: Budget) -> Found:
    """See the module."""
    return maximise(problem, np.ones(len(problem.jobs)), budget)


POLICY = Policy(allocate, objective, "steps per second")
