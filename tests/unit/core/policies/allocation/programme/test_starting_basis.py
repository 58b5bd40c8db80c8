"""The first basis where it is known: which activities and rows are basic, and how few steps are left from there."""

import numpy as np
import pytest

from support.planner.allocation import drawn, problem, with_placements
from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.problem import Problem
from synergy_core.policies.allocation.programme import programme as programmes
from synergy_core.policies.allocation.programme.activities import activities
from synergy_core.policies.allocation.programme.programme import Programme
from synergy_core.policies.allocation.programme.starting_basis import Basis, Market
from synergy_core.policies.allocation.programme.symmetry import apart


def _basis(made: Problem, direction: Floats) -> Basis:
    market = Market(activities(made), np.ones(len(made.jobs)), made.workers)
    return market.basis(np.zeros(len(made.jobs)), direction, np.zeros(market.size))


def _flags(basis: Basis) -> list[list[int]]:
    parts = (basis.activities, basis.speeds, basis.times, basis.workers)
    return [part.astype(int).tolist() for part in parts]


def test_jobs_that_share_one_type_have_time_to_spare_and_its_workers_have_the_price() -> None:
    made = problem([[4.0], [2.0], [1.0]], [1])
    assert _flags(_basis(made, np.array([4.0, 2.0, 1.0]))) == [[1, 1, 1], [0, 0, 0], [1, 1, 1], [0]]


def test_where_there_are_workers_enough_the_job_that_is_slowest_for_the_level_has_all_its_time() -> None:
    made = problem([[4.0], [2.0], [1.0]], [9])
    assert _flags(_basis(made, np.array([1.0, 1.0, 1.0]))) == [[1, 1, 1], [0, 0, 0], [1, 1, 0], [1]]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shape", ["plain", "placements", "one type", "empty type", "plenty"])
def test_as_many_are_basic_as_there_are_rows_whatever_the_shape(seed: int, shape: str) -> None:
    made = drawn(seed, 40, plenty=shape == "plenty")
    if shape == "placements":
        made = with_placements(made, seed)
    elif shape == "one type":
        made = problem(made.throughputs[:, :1], made.workers[:1], scale=made.scale)
    elif shape == "empty type":
        made = problem(made.throughputs, made.workers * [1, 1, 0], scale=made.scale)
    acts, jobs = activities(made), len(made.jobs)
    fastest = np.zeros(jobs)
    np.maximum.at(fastest, acts.first, acts.first_rate)
    some = fastest * np.random.default_rng(seed).choice([0.0, 0.5, 1.0], jobs)
    for direction in (fastest, fastest * made.weight, some):
        basis = _basis(made, direction)
        basic = sum(int(part.sum()) for part in (basis.activities, basis.speeds, basis.times, basis.workers))
        assert basic + 1 == 2 * jobs + len(made.workers), "and the level"


def _iterations(made: Problem, base: float) -> int:
    """Steps that the simplex method takes to the highest level above a part of the highest of all fastest speeds."""
    jobs = len(made.jobs)
    programme = Programme(apart(activities(made), jobs), made.workers, Budget())
    weights = np.linspace(0.5, 1.5, jobs)
    low = np.zeros(jobs)
    if base:
        fastest = programme.fastest * weights
        low = base * programme.solve(base=low, direction=fastest).level * fastest
    programme.solve(base=low, direction=made.throughputs.mean(axis=1) * weights)
    found: int = programme._highs.getInfo().simplex_iteration_count
    return found


def _families() -> list[Problem]:
    """Of 70 different jobs each: on three types, with placements, on two."""
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        speeds = rng.uniform(1, 10, (70, 1)) * np.sort(rng.uniform(0.1, 1, (70, 3)))[:, ::-1]
        plain = problem(speeds, rng.integers(10, 25, 3), scale=rng.choice([1, 1, 2, 4], 70))
        found += [plain, with_placements(plain, seed), problem(speeds[:, :2], [9, 11])]
    return found


@pytest.mark.parametrize("base", [0.0, 0.3])
def test_few_steps_are_left_whatever_the_base(base: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two for each programme on average; from a basis of slacks it is a hundred."""
    monkeypatch.setattr(programmes, "_MANY", 10)
    assert sum(_iterations(made, base) for made in _families()) <= 28
