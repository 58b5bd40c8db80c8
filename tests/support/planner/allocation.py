"""Problems for allocation policies, drawn or written down, and a second solver for what the policies answer.

The oracle writes each objective down as section 4 of the Gavel paper has it, in cvxpy, with dense matrices and all
pairs, and solves it with another solver than the project's: Clarabel, an interior-point method.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np

from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.snapshot import Tenant
from synergy_core.policies.allocation.problem import (
    UNCONSOLIDATED,
    Problem,
    check,
    effective_throughput,
    time_used,
    workers_used,
)
from synergy_core.policies.allocation.shares import equal_share_throughput, fastest_throughput, isolated_throughput

_ROUNDING = 1e-7
SECTION_4_1 = ((40.0, 10.0), (12.0, 4.0), (100.0, 50.0))
"""Steps per second on a V100 and a K80 of the three jobs of section 4.1."""


def problem(
    throughputs: Sequence[Sequence[float]] | Floats,
    workers: Sequence[float] | Ints,
    *,
    pairs: Sequence[tuple[int, int]] | Floats = (),
    pair_throughputs: Any = None,
    tenants: Sequence[Tenant] = (),
    **of_jobs: Any,
) -> Problem:
    """A problem with types t0, t1, ...; `of_jobs` are arrays of J values, by the name of their field."""
    speeds = np.array(throughputs, dtype=float)
    jobs, types = speeds.shape
    usual = {"scale": 1, "weight": 1, "steps": 1000, "elapsed": 0, "arrival": 0, "slo": np.inf}
    values = {name: np.array(of_jobs.get(name, np.full(jobs, value)), dtype=float) for name, value in usual.items()}
    names = tuple(f"t{index}" for index in range(types))
    made = Problem(
        types=names,
        workers=np.array(workers, dtype=float),
        columns=names,
        column_type=np.arange(types),
        jobs=tuple(f"j{index}" for index in range(jobs)),
        throughputs=speeds,
        isolated_elapsed=np.array(of_jobs.get("isolated_elapsed", values["elapsed"]), dtype=float),
        tenant=np.array(of_jobs.get("tenant", np.full(jobs, -1)), dtype=np.int64),
        cost=np.array(of_jobs.get("cost", np.arange(types, 0, -1)), dtype=float),
        pairs=np.array(pairs, dtype=np.int64).reshape(-1, 2),
        pair_throughputs=np.array(pair_throughputs if pair_throughputs is not None else [], dtype=float).reshape(
            -1, types, 2
        ),
        tenants=tuple(tenants),
        scale=values["scale"],
        weight=values["weight"],
        steps=values["steps"],
        elapsed=values["elapsed"],
        arrival=values["arrival"],
        slo=values["slo"],
    )
    check(made)
    return made


def drawn(seed: int, jobs: int, *, pairs: bool = False, kinds: int | None = None, plenty: bool = False) -> Problem:
    """Three types, scale factors 1 to 8, weights, types that a job cannot use; `kinds`: from so many kinds of jobs."""
    rng = np.random.default_rng(seed)
    kind = np.arange(jobs) if kinds is None else rng.integers(kinds, size=jobs)
    count = int(kind.max()) + 1
    speeds = rng.uniform(1, 10, (count, 1)) * np.sort(rng.uniform(0.1, 1, (count, 3)))[:, ::-1]
    speeds[:, 1:] *= rng.random((count, 2)) > 0.15
    scale = rng.choice([1, 1, 1, 2, 4, 8], count)
    weight = rng.choice([0.5, 1, 1, 3], count)
    between = np.triu_indices(jobs, 1)
    kept = rng.uniform(0.2, 1.0, (count, count, 3))  # of its speed, by a job of the first kind beside one of the second
    ends = (
        np.stack(between, axis=1)[scale[kind[between[0]]] == scale[kind[between[1]]]]
        if pairs
        else np.empty((0, 2), int)
    )
    one, other = kind[ends[:, 0]], kind[ends[:, 1]]
    shared = np.stack([kept[one, other] * speeds[one], kept[other, one] * speeds[other]], axis=2)
    steps = 10 ** rng.uniform(2, 5, count)
    return problem(
        speeds[kind],
        rng.integers(2, 5, 3) * (4 * jobs if plenty else max(1, jobs // 4)),
        scale=scale[kind],
        weight=weight[kind],
        steps=steps[kind],
        elapsed=(steps / speeds[:, 0] * rng.choice([0, 0.5, 2], count))[kind],
        arrival=rng.integers(0, 5, jobs),
        cost=[2.48, 1.46, 0.45],
        pairs=ends,
        pair_throughputs=shared,
    )


def with_placements(made: Problem, seed: int, *, alike: bool = False) -> Problem:
    """The problem with a column for each type on which jobs of several workers lie spread: at a tenth to 1.3 times of
    their speed, at the same if they are `alike`."""
    kept = np.random.default_rng(seed).uniform(0.1, 1.3, made.throughputs.shape)
    far = made.throughputs * (1.0 if alike else kept) * (made.scale > 1)[:, None]
    types = len(made.types)
    return replace(
        made,
        columns=(*made.types, *(name + UNCONSOLIDATED for name in made.types)),
        column_type=np.tile(np.arange(types), 2),
        throughputs=np.concatenate([made.throughputs, far], axis=1),
        pair_throughputs=np.pad(made.pair_throughputs, ((0, 0), (0, types), (0, 0))),
    )


def assert_valid(made: Problem, x: Floats) -> None:
    """Constraints (1) to (3) of section 3.1, and nobody where it cannot run."""
    assert x.shape == (made.rows, len(made.columns))
    assert x.min() >= 0.0
    assert time_used(made, x).max() <= 1.0 + 1e-9
    assert (workers_used(made, x) <= made.workers * (1.0 + 1e-9)).all()
    assert not x[: len(made.jobs)][made.throughputs == 0].any()
    assert not x[len(made.jobs) :][made.pair_throughputs.max(axis=2) == 0].any()


class Oracle:
    """The objectives of section 4 on one problem, by the other solver."""

    def __init__(self, made: Problem, time: float | Floats = 1.0) -> None:
        """`time` is what each job has of it."""
        self.made = made
        jobs, columns = made.throughputs.shape
        x = cp.Variable((made.rows, columns), nonneg=True)
        members = np.zeros((jobs, made.rows))
        members[np.arange(jobs), np.arange(jobs)] = 1.0
        for pair, ends in enumerate(made.pairs):
            members[ends, jobs + pair] = 1.0
        per_type = np.eye(len(made.types))[made.column_type]
        self.x = x
        self.constraints = [
            members @ cp.sum(x, axis=1) <= time,
            (made.row_scale() @ x) @ per_type <= made.workers,
            cp.multiply(np.concatenate([made.throughputs == 0, made.pair_throughputs.max(axis=2) == 0]), x) == 0,
        ]
        rows = []
        for job in range(jobs):
            rates = np.zeros((made.rows, columns))
            rates[job] = made.throughputs[job]
            for pair, ends in enumerate(made.pairs):
                for end in np.flatnonzero(ends == job):
                    rates[jobs + pair] = made.pair_throughputs[pair, :, end]
            rows.append(rates.ravel())
        self.throughput = np.array(rows) @ cp.reshape(x, (made.rows * columns,), order="C")
        self.paid = made.cost @ per_type.T @ cp.reshape(made.row_scale() @ x, (columns,), order="C")

    def best(self, objective: Any, constraints: Sequence[Any] = ()) -> float:
        """The optimum of a cvxpy objective; NaN where there is no feasible point.

        Where the interior-point method ends short of its tolerances, a linear programme is solved by the simplex
        method: an inaccurate optimum was 5e-6 too high.
        """
        programme = cp.Problem(objective, [*self.constraints, *constraints])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
            programme.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        if programme.status == cp.OPTIMAL_INACCURATE and programme.is_lp():
            exact = {"method": "highs-ds", "primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
            programme.solve(solver=cp.SCIPY, scipy_options=exact)
        return float(programme.value) if programme.status in {"optimal", "optimal_inaccurate"} else float("nan")

    def max_min_fairness(self) -> float:
        made = self.made
        unit = equal_share_throughput(made) * made.weight / made.scale
        return self.best(cp.Maximize(cp.min(cp.multiply(1 / unit, self.throughput))))

    def max_throughput(self) -> float:
        return self.best(cp.Maximize(cp.sum(self.throughput)))

    def makespan(self) -> float:
        unit = (self.made.steps / fastest_throughput(self.made)).max()  # no job needs less: keeps the numbers near 1
        return float(unit) / self.best(cp.Maximize(cp.min(cp.multiply(unit / self.made.steps, self.throughput))))

    def fifo(self) -> float:
        order = np.argsort(self.made.arrival, kind="stable")
        count = len(order)
        terms = [
            (count - place) / fastest_throughput(self.made)[job] * self.throughput[int(job)]
            for place, job in enumerate(order)
        ]
        return self.best(cp.Maximize(cp.sum(cp.hstack(terms))))

    def finish_time_fairness(self) -> float:
        """Convex in X: the largest of (t + steps / throughput) / D."""
        made = self.made
        until = made.isolated_elapsed + made.steps / isolated_throughput(made)
        fastest = fastest_throughput(made)
        rho = (
            made.elapsed + cp.multiply(made.steps / fastest, cp.inv_pos(cp.multiply(1 / fastest, self.throughput)))
        ) / until
        return self.best(cp.Minimize(cp.max(rho)))

    def cost(self, needed: Floats | None = None) -> float:
        """Charnes and Cooper: scaled so that what is paid is 1; `needed` are steps per second per job."""
        made = self.made
        t = cp.Variable(nonneg=True)
        jobs, columns = made.throughputs.shape
        per_type = np.eye(len(made.types))[made.column_type]
        members = np.eye(jobs, made.rows)
        for pair, ends in enumerate(made.pairs):
            members[ends, jobs + pair] = 1.0
        del columns
        constraints = [
            members @ cp.sum(self.x, axis=1) <= t,
            (made.row_scale() @ self.x) @ per_type <= made.workers * t,
            self.constraints[2],
            self.paid == 1,
            self.throughput >= (np.zeros(jobs) if needed is None else needed) * t,
        ]
        programme = cp.Problem(cp.Maximize(cp.sum(self.throughput)), constraints)
        programme.solve(solver=cp.CLARABEL)
        return float(programme.value)


def could_rise(made: Problem, x: Floats) -> float:
    """By what any one job's throughput can be raised while no other's falls, as a part of its fastest throughput.

    The solver's tolerance is not to be had: what it left of full types and full times counts as used. A job that is
    0.1 % slower on another type would turn each 1e-9 of it into 1e-6 of its time on the faster type, for somebody else.
    Nor is the measure a job's own throughput, which may be 1e-4 of its fastest.
    """
    used, busy, have = workers_used(made, x), time_used(made, x), effective_throughput(made, x)
    full, always = made.workers - used < _ROUNDING, 1.0 - busy < _ROUNDING
    oracle = Oracle(replace(made, workers=np.where(full, used, made.workers)), np.where(always, busy, 1.0))
    fastest = fastest_throughput(made)
    most = 0.0
    for job in range(len(have)):
        others = np.arange(len(have)) != job
        kept = [cp.multiply(1 / have[others], oracle.throughput[others]) >= 1 - 1e-11] if others.any() else []
        best = oracle.best(cp.Maximize(oracle.throughput[job] / fastest[job]), kept)
        most = max(most, best - float(have[job] / fastest[job]))
    return most
