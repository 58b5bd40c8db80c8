"""Minimum makespan (Gavel, section 4.2):

    minimise_X  max_m  num_steps_m / throughput(m, X)

With z = 1 / makespan each job needs throughput(m, X) >= z * num_steps_m: one linear programme.
"""

import numpy as np

from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.policies import max_min_fairness
from synergy_core.policies.allocation.policies.max_min_fairness import unit_throughput
from synergy_core.policies.allocation.policy import Found, Policy, Setting, on_columns, setting, steps_of
from synergy_core.policies.allocation.problem import Problem, effective_throughput
from synergy_core.policies.allocation.programme.levels import Level, highest_level
from synergy_core.policies.allocation.programme.progressive_filling import fill_above
from synergy_core.policies.allocation.shares import isolated_shares


def objective(problem: Problem, x: Floats) -> float:
    """Seconds until the last job is done; infinite where one that has steps to do gets nothing."""
    steps, speed = steps_of(problem, "makespan"), effective_throughput(problem, x)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(steps > 0, steps / speed, 0.0).max())


def allocate(problem: Problem, budget: Budget) -> Found:
    """See the module."""
    steps = steps_of(problem, "makespan")
    if not steps.any():
        return Found(on_columns(problem, isolated_shares(problem)))
    here = setting(problem, budget, steps)
    level = _highest(here, here.of_classes(steps))
    return here.reached(level, 1.0 / level.bound)


def efficient(problem: Problem, budget: Budget) -> Found:
    """An optimum that also divides the rest fairly: short jobs then finish long before the last one."""
    steps, unit = steps_of(problem, "makespan"), unit_throughput(problem)
    if not steps.any():
        return max_min_fairness.efficient(problem, budget)
    here = setting(problem, budget, steps, unit)
    needed = here.of_classes(steps)
    level = _highest(here, needed)
    return fill_above(here, level, level.z * needed, unit)


def _highest(here: Setting, needed: Floats) -> Level:
    """The largest z with which all jobs can have z * `needed` (G)."""
    some = needed > 0
    high = float((here.programme.fastest[some] / needed[some]).min())
    return highest_level(here.programme, lambda z: z * needed, low=0.0, high=high)


POLICY = Policy(allocate, objective, "seconds", less_is_better=True, efficient=efficient)
