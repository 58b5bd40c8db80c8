"""Finish-time fairness (Themis; Gavel, section 4.2):

    minimise_X  max_m rho_m,   rho_m = (t_m + num_steps_m / throughput(m, X))
                                       / (t_m^isolated + num_steps_m / throughput(m, X^isolated))

Not linear in X, but for a given rho it asks for a throughput of each job: num_steps_m / (rho * D_m - t_m), D_m being
the denominator. The smallest rho for which all can have theirs is found by `levels`, with z = 1 / rho.
"""

import numpy as np

from synergy_core.allocation.budget import Budget
from synergy_core.allocation.levels import highest_level
from synergy_core.allocation.policy import Found, Policy, on_columns, setting, steps_of
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
    steps, finish = steps_of(problem, "finish-time-fairness"), isolated_finish(problem)
    alone = on_columns(problem, isolated_shares(problem))
    if not steps.any():
        return Found(alone)
    here = setting(problem, budget, steps, finish, problem.elapsed)
    to_do, elapsed, until = (here.of_classes(values) for values in (steps, problem.elapsed, finish))
    some = to_do > 0

    def requirement(z: float) -> Floats:
        needed = np.zeros(len(to_do))
        needed[some] = to_do[some] * z / (until[some] - elapsed[some] * z)
        return needed

    # nobody can be done before it had its fastest speed all the time; the isolated allocation is always feasible
    soonest = (elapsed + to_do / here.programme.fastest)[some]
    high = float((until[some] / soonest).min())
    low = min(high, 1.0 / objective(problem, alone))
    level = highest_level(here.programme, requirement, low=low, high=high)
    return Found(here.x(level.time), "optimal" if level.proved else "time-limit")


POLICY = Policy(allocate, objective, NORMALISATION, less_is_better=True)
