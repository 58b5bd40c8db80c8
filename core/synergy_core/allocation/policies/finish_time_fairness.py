"""Finish-time fairness (Themis; Gavel, section 4.2):

    minimise_X  max_m rho_m,   rho_m = (t_m + num_steps_m / throughput(m, X))
                                       / (t_m^isolated + num_steps_m / throughput(m, X^isolated))

Not linear in X, but for a given rho it asks for a throughput of each job: num_steps_m / (rho * D_m - t_m), D_m being
the denominator. The smallest rho for which all can have theirs is found by `levels`, with z = 1 / rho.
"""

import numpy as np

from synergy_core.allocation.budget import Budget
from synergy_core.allocation.filling import fill_above
from synergy_core.allocation.levels import Level, highest_level
from synergy_core.allocation.policies import max_min_fairness
from synergy_core.allocation.policies.max_min_fairness import unit_throughput
from synergy_core.allocation.policy import Found, Policy, Setting, on_columns, setting, steps_of
from synergy_core.allocation.problem import Floats, Problem, effective_throughput
from synergy_core.allocation.shares import isolated_shares, isolated_throughput

NORMALISATION = (
    "isolated share: 1/n of each type's workers / scale factor, at most 1 in total; "
    "time since start of the isolated run: isolated_time, else time_since_start"
)


def isolated_finish(problem: Problem) -> Floats:
    """J: D_m, seconds from start to end on one nth of the cluster."""
    steps = steps_of(problem, "finish-time-fairness")
    return problem.isolated_elapsed + steps / isolated_throughput(problem)


def finish_time_fairness(problem: Problem, x: Floats) -> Floats:
    """J: rho of each job that has steps to do, 0 of the others."""
    steps, speed = steps_of(problem, "finish-time-fairness"), effective_throughput(problem, x)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = (problem.elapsed + steps / speed) / isolated_finish(problem)
    return np.asarray(np.where(steps > 0, rho, 0.0))


def objective(problem: Problem, x: Floats) -> float:
    """The largest rho."""
    return float(finish_time_fairness(problem, x).max())


def allocate(problem: Problem, budget: Budget) -> Found:
    """See the module."""
    if not steps_of(problem, "finish-time-fairness").any():
        return Found(on_columns(problem, isolated_shares(problem)))
    here = setting(problem, budget, problem.steps, isolated_finish(problem), problem.elapsed)
    level, _ = _highest(here)
    return here.reached(level, 1.0 / level.bound)


def efficient(problem: Problem, budget: Budget) -> Found:
    """Of the optima one that deals out fairly what is left over."""
    unit = unit_throughput(problem)
    if not steps_of(problem, "finish-time-fairness").any():
        return max_min_fairness.efficient(problem, budget)
    here = setting(problem, budget, problem.steps, isolated_finish(problem), problem.elapsed, unit)
    level, floor = _highest(here)
    return fill_above(here, level, floor, unit)


def _highest(here: Setting) -> tuple[Level, Floats]:
    """The level z = 1 / rho, and what it demands of a job of each class (G)."""
    problem = here.problem
    finish = isolated_finish(problem)
    to_do, elapsed, until = (here.of_classes(values) for values in (problem.steps, problem.elapsed, finish))
    some = to_do > 0

    def requirement(z: float) -> Floats:
        needed = np.zeros(len(to_do))
        needed[some] = to_do[some] * z / (until[some] - elapsed[some] * z)
        return needed

    # nobody can be done before it had its fastest speed all the time; the isolated allocation is always feasible
    soonest = (elapsed + to_do / here.programme.fastest)[some]
    high = float((until[some] / soonest).min())
    low = min(high, 1.0 / objective(problem, on_columns(problem, isolated_shares(problem))))
    level = highest_level(here.programme, requirement, low=low, high=high)
    return level, requirement(level.z)


POLICY = Policy(allocate, objective, NORMALISATION, less_is_better=True, efficient=efficient)
