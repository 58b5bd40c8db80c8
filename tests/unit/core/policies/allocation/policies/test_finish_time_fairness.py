"""Finish-time fairness against a second solution: bisection on rho, each trial a feasibility programme of scipy's.

Nothing of the project's programmes is used: isolated throughputs, time limits and the order of the rhos are written
down anew from Gavel's section 4.2.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from support.planner.allocation import assert_valid, drawn, problem
from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.policies.finish_time_fairness import finish_time_fairness
from synergy_core.policies.allocation.problem import Problem

SEEDS = st.integers(0, 10_000)


class Second:
    """Jobs without pairs and placements."""

    def __init__(self, made: Problem) -> None:
        self.made = made
        self.jobs, self.types = made.throughputs.shape
        share = np.array([[workers / self.jobs / scale for workers in made.workers] for scale in made.scale])
        share /= np.maximum(1.0, share.sum(axis=1))[:, None]
        self.until = made.isolated_elapsed + made.steps / (share * made.throughputs).sum(axis=1)
        # each job's time is at most 1, each type's workers at most all
        self.limits = [np.kron(np.eye(self.jobs)[job], np.ones(self.types)) for job in range(self.jobs)]
        self.limits += [np.kron(made.scale, np.eye(self.types)[kind]) for kind in range(self.types)]
        self.most = [1.0] * self.jobs + list(made.workers)
        self.best = self.rho(made.throughputs.max(axis=1))

    def rho(self, speed: Floats) -> Floats:
        return np.asarray((self.made.elapsed + self.made.steps / speed) / self.until)

    def feasible(self, rho: Floats) -> bool:
        """Whether all jobs can have a rho of at most this (J)."""
        left = rho * self.until - self.made.elapsed
        if (left <= 0).any():
            return False
        ask = [np.kron(np.eye(self.jobs)[job], -self.made.throughputs[job] * left[job]) for job in range(self.jobs)]
        scale = self.made.steps
        rows = np.array([*self.limits, *(row / scale[job] for job, row in enumerate(ask))])
        found = linprog(np.zeros(rows.shape[1]), A_ub=rows, b_ub=[*self.most, *[-1.0] * self.jobs], bounds=(0, 1))
        return bool(found.status == 0)

    def bisect(self, fixed: dict[int, float]) -> float:
        """The smallest rho that all others can have beside those with a fixed one; none goes below its best."""
        low, high = 0.0, 1e6
        for _ in range(60):
            middle = np.sqrt(max(low, 1e-6) * high)
            trial = np.maximum(np.full(self.jobs, middle), self.best * (1 + 1e-9))
            for job, value in fixed.items():
                trial[job] = value
            low, high = (low, middle) if self.feasible(trial) else (middle, high)
        return high

    def lexicographic(self) -> Floats:
        """J: rho, where the largest is smallest, then the second largest, and so on."""
        fixed: dict[int, float] = {}
        while len(fixed) < self.jobs:
            level = self.bisect(fixed) * (1 + 1e-7)
            now = np.maximum(level, self.best * (1 + 1e-7))
            for job, value in fixed.items():
                now[job] = value
            ended = [
                job
                for job in range(self.jobs)
                if job not in fixed
                and (now[job] > level or not self.feasible(np.where(np.arange(self.jobs) == job, 0.999 * now, now)))
            ]
            fixed |= {job: float(now[job]) for job in ended}
            assert ended, "each level ends at least one job"
        return np.array([fixed[job] for job in range(self.jobs)])


def _with_accounts(seed: int, jobs: int) -> Problem:
    """Jobs that have waited between nothing and ten times as long as their progress takes in isolation."""
    made = drawn(seed, jobs)
    rng = np.random.default_rng(seed + 1)
    return replace(made, isolated_elapsed=made.elapsed * rng.choice([0.1, 0.5, 1.0, 2.0], jobs))


@settings(max_examples=25)
@given(seed=SEEDS, jobs=st.integers(1, 6))
def test_the_largest_rho_is_that_of_bisection(seed: int, jobs: int) -> None:
    made = _with_accounts(seed, jobs)
    found = solve(made, "finish-time-fairness")
    assert_valid(made, found.x)
    second = Second(made)
    assert found.objective == pytest.approx(max(second.bisect({}), second.best.max()), rel=1e-5)


@settings(max_examples=12)
@given(seed=SEEDS, jobs=st.integers(2, 5))
def test_in_rounds_so_is_every_further_rho(seed: int, jobs: int) -> None:
    made = _with_accounts(seed, jobs)
    found = solve(made, "finish-time-fairness", efficient=True)
    assert_valid(made, found.x)
    assert found.status == "optimal"
    assert finish_time_fairness(made, found.x) == pytest.approx(Second(made).lexicographic(), rel=2e-3)


def test_a_hopeless_job_does_not_switch_off_the_accounts_of_others() -> None:
    """It waited for 10⁶ s and is done in 100: no allocation brings its rho below 1,000. It runs all the time. Of the
    others the starved one has the next claim, as it has without the hopeless job."""
    waited, owed = [1e6, 1000, 1000], [900, 0, 1000]
    beside = problem([[1.0]] * 3, [2], steps=[100, 1000, 1000], elapsed=waited, isolated_elapsed=owed)
    without = problem([[1.0]] * 2, [1], steps=[1000, 1000], elapsed=waited[1:], isolated_elapsed=owed[1:])
    x, alone = (solve(made, "finish-time-fairness", efficient=True).x[:, 0] for made in (beside, without))
    assert x[0] == pytest.approx(1.0)
    assert alone[0] > 1.3 * alone[1], "the account counts"
    assert x[1] > 1.3 * x[2]
    rho = finish_time_fairness(beside, x[:, None])
    assert rho[1] == pytest.approx(rho[2])
