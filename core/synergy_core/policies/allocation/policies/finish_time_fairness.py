"""Finish-time fairness (Themis; Gavel, section 4.2):

    minimise_X  max_m rho_m,   rho_m = (t_m + num_steps_m / throughput(m, X))
                                       / (t_m^isolated + num_steps_m / throughput(m, X^isolated))

It is not linear in X. But a given rho asks for a throughput of each job: num_steps_m / (rho * D_m - t_m), where D_m is
the denominator. `levels` finds the smallest rho for which all jobs can have theirs, with z = 1 / rho.
"""

import numpy as np

from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation.budget import Budget, OutOfTimeError
from synergy_core.policies.allocation.policies import max_min_fairness
from synergy_core.policies.allocation.policies.max_min_fairness import unit_throughput
from synergy_core.policies.allocation.policy import Found, Policy, Setting, on_columns, setting, steps_of
from synergy_core.policies.allocation.problem import Problem, effective_throughput
from synergy_core.policies.allocation.programme.levels import Level, highest_level
from synergy_core.policies.allocation.programme.progressive_filling import fill_above
from synergy_core.policies.allocation.shares import isolated_shares, isolated_throughput

Mask = np.typing.NDArray[np.bool_]

_PRICED = 1e-7
"""Of the largest price among the jobs that rise: what is less is the solver's rounding."""
_FULL = 1e-9

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
    """The optimum with the smallest second largest rho too, then the third largest, and so on (`_fill_by_rho`)."""
    unit = unit_throughput(problem)
    if not steps_of(problem, "finish-time-fairness").any():
        return max_min_fairness.efficient(problem, budget)
    here = setting(problem, budget, problem.steps, isolated_finish(problem), problem.elapsed, unit)
    level, floor, to_the_end = _fill_by_rho(here)
    if to_the_end and not (problem.steps > 0).all():  # jobs without steps share what is left over
        return fill_above(here, level, floor, unit)
    return Found(here.x(level.time), "optimal" if to_the_end else "time-limit")


def _fill_by_rho(here: Setting) -> tuple[Level, Floats, bool]:
    """Water filling over z = 1 / rho: each step raises the z of all jobs that can still rise.

    A job that cannot have a smaller rho keeps what it has: it runs all the time at its fastest speed, or it is
    bottlenecked (`filling`). It does not hold the others' level. So one job that was starved beyond repair does not
    switch off the others' accounts.

    Returns the last level, what it demands of a job of each class (G), and whether the steps went to the end. Raises
    OutOfTimeError where time ran out before the first level.
    """
    problem, fastest = here.problem, here.programme.fastest
    to_do, elapsed = here.of_classes(problem.steps), here.of_classes(problem.elapsed)
    until = here.of_classes(isolated_finish(problem))
    rises, limit, held = to_do > 0, np.where(to_do > 0, fastest, 0.0), np.zeros(len(to_do))
    low = _surely(problem)
    reached: Level | None = None
    while rises.any():

        def requirement(z: float, rises: Mask = rises, limit: Floats = limit, held: Floats = held) -> Floats:
            time_left = until - elapsed * z  # times z: seconds from now to the end at this rho
            soon = rises & (time_left > 0)
            needed = np.where(rises, limit, held)
            needed[soon] = np.minimum(limit[soon], to_do[soon] * z / time_left[soon])
            return needed

        # at this z every job that rises is at its limit
        high = float((until[rises] / (elapsed[rises] + to_do[rises] / limit[rises])).max())
        had = None if reached is None else here.programme.throughput(reached.time)
        try:
            level = highest_level(here.programme, requirement, low=min(low, high), high=high, reached=had)
        except OutOfTimeError:
            if reached is None:
                raise
            return reached, held, False
        reached, now = level, requirement(level.z)
        if not level.proved:
            return level, now, False
        price = np.where(rises, level.scarcity * fastest, 0.0)
        limit = np.where(rises, np.minimum(limit, np.maximum(now, level.ceiling)), limit)
        at_limit = now >= limit * (1.0 - _FULL)
        still = rises & ~(price > _PRICED * price.max(initial=0.0)) & ~at_limit
        if np.array_equal(still, rises):  # what rises on rises by less than the solver can tell
            still = np.zeros_like(rises)
        rises, held, low = still, now, level.z
    if reached is None:
        raise ValueError("no job could rise from the start")
    return reached, held, True


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

    # no job can be done sooner than at its fastest speed all the time
    soonest = (elapsed + to_do / here.programme.fastest)[some]
    high = float((until[some] / soonest).min())
    low = min(high, _surely(problem))
    level = highest_level(here.programme, requirement, low=low, high=high)
    return level, requirement(level.z)


def _surely(problem: Problem) -> float:
    """A level 1 / rho that can be had: the isolated allocation is feasible, but where tenants have guarantees or
    limits."""
    return 0.0 if problem.bounds else 1.0 / objective(problem, on_columns(problem, isolated_shares(problem)))


POLICY = Policy(allocate, objective, NORMALISATION, less_is_better=True, efficient=efficient)
