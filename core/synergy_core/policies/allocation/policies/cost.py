"""Most throughput for the money, with or without deadlines (Gavel, section 4.2):

    maximise_X  sum_m throughput(m, X) / sum_k sum_j cost_j * scale_factor_k * X_kj
    subject to  throughput(m, X) >= num_steps_m / SLO_m   for each job with an SLO (min-cost-slo)

The cost is what is paid per hour, on average over time. A job pays for all its workers, and a pair pays once.

In rounds (`efficient`) the best ratio would give the cluster to one kind of job at a time, the one with the cheapest
steps. All others would wait for its end, though their own steps would cost no more beside it. So in rounds each job has
its steps where they are its own cheapest, fairly among jobs that want the same (water filling), alone or with another
job whose steps are cheapest there too. What deadlines need comes first, at the least cost that keeps them all.

The programme is linear-fractional. Dinkelbach's sequence of linear programmes (maximise N - q D, with q the best ratio
N / D so far) converges superlinearly and ends with q as the optimum. Of all optima (without deadlines every multiple of
one is one) the one with the most throughput is given.
"""

from dataclasses import replace

import numpy as np

from synergy_core.model.arrays import Floats
from synergy_core.model.snapshot import FieldError
from synergy_core.policies.allocation.budget import Budget, OutOfTimeError
from synergy_core.policies.allocation.policies import water_filling
from synergy_core.policies.allocation.policy import Found, Policy, Setting, setting
from synergy_core.policies.allocation.problem import Problem, effective_throughput, time_used, workers_used
from synergy_core.policies.allocation.programme.point import InfeasibleError, Point

_CLOSE = 1e-10
_BELOW = 1e-6
_MOST_STEPS = 50
_SAME = 1e-9
"""Prices of a step that differ by less are the same."""


def prices(problem: Problem) -> Floats:
    """W: price per worker and hour; raises FieldError for a type with workers that has none."""
    for type_ in np.flatnonzero(np.isnan(problem.cost) & (problem.workers > 0))[:1]:
        raise FieldError(
            f"costs_per_hour.{problem.types[type_]}",
            "is missing; the cost policies need the price of every worker type",
        )
    cost = np.nan_to_num(problem.cost)
    for type_ in np.flatnonzero((cost <= 0) & (problem.workers > 0))[:1]:
        raise FieldError(f"costs_per_hour.{problem.types[type_]}", f"must be above 0, is {cost[type_]:g}")
    return cost


def objective(problem: Problem, x: Floats) -> float:
    """Steps per second for each dollar per hour."""
    paid = float(workers_used(problem, x) @ prices(problem))
    return float(effective_throughput(problem, x).sum()) / paid if paid > 0 else 0.0


def slo_throughput(problem: Problem) -> Floats:
    """J: num_steps_m / SLO_m, steps per second that a job needs; 0 without an SLO."""
    needed = np.zeros(len(problem.jobs))
    due = np.isfinite(problem.slo)
    for job in np.flatnonzero(due & np.isnan(problem.steps))[:1]:
        raise FieldError(f"jobs[{job}].steps_remaining", "is missing; a job with an SLO needs it")
    needed[due] = problem.steps[due] / problem.slo[due]
    return needed


def allocate_min_cost(problem: Problem, budget: Budget) -> Found:
    """Without deadlines."""
    return _allocate(problem, np.zeros(len(problem.jobs)), budget)


def allocate_min_cost_slo(problem: Problem, budget: Budget) -> Found:
    """With deadlines."""
    needed = slo_throughput(problem)
    try:
        return _allocate(problem, needed, budget)
    except InfeasibleError:
        raise _who_cannot(problem, needed, budget) from None


def _allocate(problem: Problem, needed: Floats, budget: Budget) -> Found:
    price = prices(problem)
    here = setting(problem, budget, needed)
    acts, base = here.programme.acts, here.of_classes(needed)
    rate = acts.first_rate + acts.second_rate
    paid = price[acts.type_] * acts.scale
    unit = float(rate.max())
    begin = here.programme.best_ratio(base, rate, price) * (1.0 - _BELOW)
    best = here.programme.solve(base=base, gain=(rate - begin * paid) / unit)
    for _ in range(_MOST_STEPS):
        ratio = _ratio(best, rate, paid)
        try:
            point = here.programme.solve(base=base, gain=(rate - ratio * paid) / unit)
        except OutOfTimeError:
            return Found(here.x(best.time), "time-limit")
        won = point.objective * unit
        if point.cut_short:
            return Found(here.x((point if won > 0 else best).time), "time-limit")
        if won <= _CLOSE * max(1e-300, float(rate @ best.time)):
            return _most(here, best, base, rate / unit, (rate - ratio * paid) / unit)
        best = point
    return Found(here.x(best.time), "time-limit", f"not converged in {_MOST_STEPS} steps")


def _ratio(point: Point, rate: Floats, paid: Floats) -> float:
    return float(rate @ point.time) / float(paid @ point.time)


def _most(here: Setting, best: Point, base: Floats, rate: Floats, won: Floats) -> Found:
    """Of the points with the best ratio the one with the most throughput."""
    try:
        point = here.programme.solve(base=base, gain=rate, surplus=won + _CLOSE * rate)
    except (InfeasibleError, OutOfTimeError):
        return Found(here.x(best.time))
    return Found(here.x((best if point.cut_short else point).time))


def _rounds(problem: Problem, budget: Budget, needed: Floats) -> Found:
    """What rounds follow. Time out in the second step leaves what the first one found."""
    price = prices(problem)
    x = np.zeros((problem.rows, len(problem.columns)))
    if needed.any():
        here = setting(problem, budget, needed)
        acts = here.programme.acts
        paid = price[acts.type_] * acts.scale
        try:
            point = here.programme.solve(base=here.of_classes(needed), gain=-paid / paid.max())
        except InfeasibleError:
            raise _who_cannot(problem, needed, budget) from None
        x = here.x(point.time)
    left = 1.0 - time_used(problem, x)
    workers = np.maximum(problem.workers - workers_used(problem, x), 0.0)
    workers[workers < _CLOSE * problem.workers.sum()] = 0.0
    cheap = _cheapest(problem, price)
    able = np.flatnonzero(((cheap * (workers[problem.column_type] > 0)).max(axis=1) > 0) & (left > _CLOSE))
    if not len(able):
        return Found(x)
    place = np.full(len(problem.jobs), -1, dtype=np.int64)
    place[able] = np.arange(len(able))
    both = np.flatnonzero((place[problem.pairs] >= 0).all(axis=1))
    cheapest = np.minimum(cheap[problem.pairs[both, 0]], cheap[problem.pairs[both, 1]]) > 0
    rest = replace(
        problem,
        bounds=(),
        workers=workers,
        jobs=tuple(problem.jobs[index] for index in able),
        throughputs=cheap[able],
        pairs=place[problem.pairs[both]],
        pair_throughputs=np.where(cheapest[:, :, None], problem.pair_throughputs[both], 0.0),
        **{name: getattr(problem, name)[able] for name in _OF_JOBS},
    )
    try:
        found = water_filling.POLICY.allocate(rest, budget)
    except OutOfTimeError:
        if not needed.any():
            raise
        return Found(x, "time-limit")
    fits = np.minimum(1.0, left[able] / np.maximum(time_used(rest, found.x), 1e-300))
    rows = np.concatenate([able, len(problem.jobs) + both])
    x[rows] += found.x * np.concatenate([fits, fits[rest.pairs].min(axis=1, initial=1.0)])[:, None]
    return Found(x, found.status)


_OF_JOBS = ("scale", "weight", "steps", "elapsed", "isolated_elapsed", "arrival", "slo", "tenant")


def _cheapest(problem: Problem, price: Floats) -> Floats:
    """J x C: throughputs where a job's steps are its cheapest, 0 elsewhere."""
    worth = problem.throughputs / np.where(problem.workers > 0, price, np.inf)[problem.column_type]
    return np.where(worth >= worth.max(axis=1, keepdims=True) * (1.0 - _SAME), problem.throughputs, 0.0)


def rounds_min_cost(problem: Problem, budget: Budget) -> Found:
    """Without deadlines."""
    return _rounds(problem, budget, np.zeros(len(problem.jobs)))


def rounds_min_cost_slo(problem: Problem, budget: Budget) -> Found:
    """With deadlines."""
    return _rounds(problem, budget, slo_throughput(problem))


def _who_cannot(problem: Problem, needed: Floats, budget: Budget) -> FieldError:
    """The job to name for an infeasible problem: one that could not even alone, else the one that falls shortest."""
    usable = problem.throughputs * (problem.workers[problem.column_type] > 0)
    alone = usable.max(axis=1)
    for job in np.flatnonzero(needed > alone * (1 + 1e-9))[:1]:
        return FieldError(
            f"jobs[{job}].slo_s",
            f"{problem.slo[job]:g} s cannot be met: {problem.steps[job]:g} steps take job {problem.jobs[job]!r} "
            f"{problem.steps[job] / alone[job]:g} s at its fastest; give it more time",
        )
    here = setting(problem, budget, needed)
    direction = here.of_classes(needed)
    point = here.programme.solve(base=np.zeros_like(direction), direction=direction)
    short = int(np.argmax(point.price[here.merged.job_class] * needed))
    return FieldError(
        f"jobs[{short}].slo_s",
        f"no feasible allocation: all SLOs together need 1 / {point.level:.4g} times what the cluster can do; give job "
        f"{problem.jobs[short]!r} (and those like it) more time, or add workers",
    )


_MEASURE = "steps per second for each dollar per hour, all workers of a job paid for"
MIN_COST = Policy(allocate_min_cost, objective, _MEASURE, efficient=rounds_min_cost)
MIN_COST_SLO = Policy(allocate_min_cost_slo, objective, _MEASURE, efficient=rounds_min_cost_slo)
