"""Max-min fairness, also known as LAS (Gavel, section 4.1):

    maximise_X  min_m  1/w_m * throughput(m, X) / throughput(m, X^equal) * scale_factor_m

One linear programme. Jobs that could have more than the smallest may be left with less than they could have: see
`water_filling` for the version that is Pareto efficient.
"""

from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.policy import Found, Policy, setting
from synergy_core.policies.allocation.problem import Problem, effective_throughput
from synergy_core.policies.allocation.programme.levels import highest_level
from synergy_core.policies.allocation.programme.progressive_filling import fill_each
from synergy_core.policies.allocation.shares import equal_share_throughput

NORMALISATION = (
    "throughput / throughput at the equal share (workers_j / total workers on each type j) * scale factor / weight"
)


def unit_throughput(problem: Problem) -> Floats:
    """J: steps per second at which a job's weighted normalised throughput is 1."""
    return equal_share_throughput(problem) * problem.weight / problem.scale


def objective(problem: Problem, x: Floats) -> float:
    """The smallest weighted normalised throughput."""
    return float((effective_throughput(problem, x) / unit_throughput(problem)).min())


def allocate(problem: Problem, budget: Budget) -> Found:
    """See the module."""
    unit = unit_throughput(problem)
    here = setting(problem, budget, unit)
    units = here.of_classes(unit)
    high = float((here.programme.fastest / units).min())
    level = highest_level(here.programme, lambda z: z * units, low=0.0, high=high)
    return here.reached(level, level.bound)


def efficient(problem: Problem, budget: Budget) -> Found:
    """Of the optima the one in which the others rise on (`water_filling`)."""
    return fill_each(problem, unit_throughput(problem), budget)


POLICY = Policy(allocate, objective, NORMALISATION, efficient=efficient)
