"""Minimum makespan (Gavel, section 4.2):

    minimise_X  max_m  num_steps_m / throughput(m, X)

With z = 1 / makespan each job needs throughput(m, X) >= z * num_steps_m: one linear programme.
"""

import numpy as np

from synergy_core.allocation.budget import Budget
from synergy_core.allocation.filling import fill_each
from synergy_core.allocation.levels import highest_level
from synergy_core.allocation.policy import Found, Policy, on_columns, setting, steps_of
from synergy_core.allocation.problem import Floats, Problem, effective_throughput
from synergy_core.allocation.shares import isolated_shares


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
    needed = here.of_classes(steps)
    some = needed > 0
    high = float((here.programme.fastest[some] / needed[some]).min())
    level = highest_level(here.programme, lambda z: z * needed, low=0.0, high=high)
    return Found(here.x(level.time), "optimal" if level.proved else "time-limit")


def efficient(problem: Problem, budget: Budget) -> Found:
    """Of the optima the one in which the job that is last but one is done soonest, and so on."""
    return fill_each(problem, np.maximum(steps_of(problem, "makespan"), 1.0), budget)


POLICY = Policy(allocate, objective, "seconds", less_is_better=True, efficient=efficient)
