"""The highest level against closed forms: jobs of speed 1 on one type have it if all they ask for is at most the
workers, so the level is where the sum of what it demands passes that."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from support.planner.allocation import drawn, problem
from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation.budget import Budget, OutOfTimeError
from synergy_core.policies.allocation.programme import levels
from synergy_core.policies.allocation.programme.activities import activities
from synergy_core.policies.allocation.programme.levels import Level, highest_level
from synergy_core.policies.allocation.programme.point import InfeasibleError, Point
from synergy_core.policies.allocation.programme.programme import Programme
from synergy_core.policies.allocation.programme.symmetry import apart

Requirement = Callable[[float], Floats]


def _programme(jobs: int, workers: float, solves: int | None = None, *, speeds: Any = None) -> Programme:
    """`solves`: time for so many programmes."""
    left: Iterator[float] = iter([9.0] * (10**6 if solves is None else solves))
    made = problem([[1.0]] * jobs if speeds is None else speeds, [workers])
    return Programme(apart(activities(made), jobs), made.workers, Budget(lambda: next(left, 0.0)))


def _counted(programme: Programme, monkeypatch: pytest.MonkeyPatch) -> list[Point]:
    """The points that it finds from now on."""
    found: list[Point] = []
    solve = programme.solve

    def counting(**numbers: Any) -> Point:
        found.append(solve(**numbers))
        return found[-1]

    monkeypatch.setattr(programme, "solve", counting)
    return found


def _holds(programme: Programme, level: Level, requirement: Requirement) -> None:
    assert (programme.throughput(level.time) >= requirement(level.z) - 1e-8 * programme.fastest).all()


def _curved(powers: list[float]) -> Requirement:
    return lambda z: np.minimum(1.0, z ** np.array(powers))


def _root(requirement: Requirement, workers: float) -> float:
    return float(brentq(lambda z: requirement(z).sum() - workers, 1e-9, 1.0, xtol=1e-14))


@settings(max_examples=30)
@given(powers=st.lists(st.sampled_from((0.25, 0.5, 1.0, 2.0, 5.0)), min_size=2, max_size=6), part=st.floats(0.1, 0.95))
def test_where_what_is_demanded_is_curved_it_is_the_root(powers: list[float], part: float) -> None:
    workers, requirement = part * len(powers), _curved(powers)
    programme = _programme(len(powers), workers)
    level = highest_level(programme, requirement, low=0.0, high=1.0)
    assert level.z == pytest.approx(_root(requirement, workers), rel=1e-7)
    assert level.bound >= level.z
    assert level.bound == pytest.approx(level.z, rel=1e-7)
    assert level.proved
    _holds(programme, level, requirement)


def test_where_it_is_a_straight_line_one_programme_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    programme = _programme(3, 1.5)
    found = _counted(programme, monkeypatch)
    level = highest_level(programme, lambda z: z * np.array([1.0, 0.5, 0.25]), low=0.0, high=1.0)
    assert level.z == pytest.approx(1.5 / 1.75)
    assert level.proved
    assert len(found) == 1
    assert (level.scarcity > 0).all(), "all stand in each other's way"


def test_where_the_highest_is_feasible_it_is_that_and_nobody_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    programme = _programme(3, 3.0)
    found = _counted(programme, monkeypatch)
    level = highest_level(programme, _curved([1.0, 2.0, 3.0]), low=0.0, high=0.75)
    assert (level.z, level.bound, level.proved) == (0.75, 0.75, True)
    assert not level.scarcity.any()
    assert np.isinf(level.ceiling).all()
    assert len(found) == 1


@pytest.mark.parametrize("first", [None, 0.01, 0.2, 0.9])
def test_it_does_not_depend_on_where_it_begins_and_takes_few_programmes(
    first: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    requirement = _curved([0.3, 1.0, 4.0, 9.0])
    programme = _programme(4, 1.7)
    found = _counted(programme, monkeypatch)
    level = highest_level(programme, requirement, low=0.0, high=1.0, first=first)
    assert level.z == pytest.approx(_root(requirement, 1.7), rel=1e-8)
    assert level.proved
    assert len(found) <= 8


def test_from_what_was_reached_before_the_others_rise_on() -> None:
    """At 0.4 the first two have what they had before; only the last one asks for more."""
    requirement: Requirement = lambda z: np.array([0.5, 0.25, z])  # noqa: E731
    programme = _programme(3, 1.25)
    before = programme.solve(base=np.array([0.5, 0.25, 0.1]))
    level = highest_level(programme, requirement, low=0.1, high=1.0, reached=programme.throughput(before.time))
    assert level.z == pytest.approx(0.5)
    assert level.proved
    _holds(programme, level, requirement)


def test_a_hair_less_that_rounding_left_of_what_was_reached_does_no_harm() -> None:
    requirement: Requirement = lambda z: np.array([0.5, z])  # noqa: E731
    programme = _programme(2, 1.0)
    level = highest_level(programme, requirement, low=0.5, high=1.0, reached=np.array([0.5, 0.5]) * (1 - 1e-10))
    assert level.z == pytest.approx(0.5)
    assert level.proved
    _holds(programme, level, requirement)


def test_where_nobody_asks_for_more_the_highest_is_reached() -> None:
    programme = _programme(2, 1.0)
    level = highest_level(programme, lambda _: np.array([0.5, 0.5]), low=0.0, high=7.0)
    assert (level.z, level.proved) == (7.0, True)
    assert programme.throughput(level.time) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("solves", range(1, 6))
def test_when_time_ends_it_says_what_was_reached_and_what_is_out_of_reach(solves: int) -> None:
    requirement = _curved([0.3, 1.0, 4.0, 9.0])
    best = _root(requirement, 1.7)
    programme = _programme(4, 1.7, solves)
    level = highest_level(programme, requirement, low=0.0, high=1.0)
    assert level.z <= best * (1 + 1e-8)
    assert level.bound >= best * (1 - 1e-8)
    assert level.bound < 1.0
    _holds(programme, level, requirement)
    if solves == 1:
        assert not level.proved
        assert level.z > 0.0


def test_without_time_for_one_programme_there_is_no_level() -> None:
    with pytest.raises(OutOfTimeError):
        highest_level(_programme(2, 1.0, 0), _curved([1.0, 2.0]), low=0.0, high=1.0)


def test_steps_in_what_is_demanded_are_found_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing until 0.6, then all at once: upper bounds alone would fall slowly."""
    requirement: Requirement = lambda z: np.array([z * 0.1, 0.0 if z < 0.6 else 1.0, 0.0 if z < 0.3 else 0.2])  # noqa: E731
    programme = _programme(3, 1.0)
    found = _counted(programme, monkeypatch)
    level = highest_level(programme, requirement, low=0.0, high=1.0)
    assert level.z == pytest.approx(0.6, rel=1e-6)
    assert len(found) < 60


def test_speeds_orders_apart_are_weighed_by_each_jobs_own() -> None:
    """A thousandth of the first job's rounding would be all of the second's speed."""
    programme = _programme(2, 1.0, speeds=[[1e6], [1e-3]])
    requirement: Requirement = lambda z: np.array([1e6, 1e-3]) * np.array([z, z * z])  # noqa: E731
    level = highest_level(programme, requirement, low=0.0, high=1.0)
    assert level.z == pytest.approx((5**0.5 - 1) / 2, rel=1e-8)
    _holds(programme, level, requirement)


@pytest.mark.parametrize("speed", [1e-6, 1.0, 1e6])
def test_what_a_point_reaches_is_told_in_parts_of_each_jobs_own_speed(speed: float) -> None:
    """Two jobs, a quarter and a half of the time: the first is the one that holds the level."""
    programme = _programme(2, 1.0, speeds=[[speed], [speed]])
    time = np.array([0.25, 0.5])
    requirement: Requirement = lambda z: speed * np.array([z, z**2])  # noqa: E731
    assert levels._reached(programme, requirement, time, 0.0, 1.0) == pytest.approx(0.25, rel=1e-7)
    assert levels._reached(programme, requirement, time, 0.0, 0.2) == 0.2
    other: Requirement = lambda z: speed * np.array([z**3, z])  # noqa: E731
    assert levels._reached(programme, other, time, 0.0, 1.0) == pytest.approx(0.5, rel=1e-7)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_a_level_is_found_as_exactly_whatever_its_size(size: float, monkeypatch: pytest.MonkeyPatch) -> None:
    curved = _curved([0.3, 1.0, 4.0, 9.0])
    programme = _programme(4, 1.7)
    found = _counted(programme, monkeypatch)
    level = highest_level(programme, lambda z: curved(z / size), low=0.0, high=size)
    assert level.z == pytest.approx(size * _root(curved, 1.7), rel=1e-8)
    assert level.proved
    assert len(found) <= 6


def _feasible(programme: Programme, base: Floats) -> bool:
    try:
        programme.solve(base=base)
    except InfeasibleError:
        return False
    return True


@pytest.mark.parametrize("seed", range(8))
def test_on_stairs_with_jobs_of_many_speeds_it_is_the_last_step_that_is_feasible(seed: int) -> None:
    """Each job's demand rises in stairs of its own."""
    made = drawn(seed, 12)
    programme = Programme(apart(activities(made), 12), made.workers * 0.4, Budget())
    stairs = np.random.default_rng(seed).integers(2, 40, 12)
    requirement: Requirement = lambda z: programme.fastest * np.floor(z * stairs) / stairs  # noqa: E731
    other = Programme(apart(activities(made), 12), made.workers * 0.4, Budget())
    ends = np.unique(np.concatenate([np.arange(1, count + 1) / count for count in stairs.tolist()]))
    first = next(end for end in ends.tolist() if not _feasible(other, requirement(end + 1e-12)))
    level = highest_level(programme, requirement, low=0.0, high=1.0)
    assert level.z == pytest.approx(first, rel=1e-6)
    assert level.proved
    _holds(programme, level, lambda z: requirement(z * (1 - 1e-9)))


@pytest.mark.parametrize("seed", [5, 17, 23])
def test_where_demands_shoot_up_one_after_another_the_middle_is_tried_too(seed: int) -> None:
    """As of jobs that are late: no more than a part of their time until shortly before all of it."""
    made, rng = drawn(seed, 12), np.random.default_rng(seed)
    workers = made.workers * rng.choice([0.1, 0.3, 0.6])
    steep, ends = 10 ** rng.uniform(-1.3, 1.3, 12), rng.uniform(0.05, 1.2, 12)
    programme, other = (Programme(apart(activities(made), 12), workers, Budget()) for _ in range(2))

    def requirement(z: float) -> Floats:
        risen = np.where(z < ends, 0.01 * z * steep / np.maximum(ends - z, 1e-12), 1.0)
        return programme.fastest * np.minimum(1.0, risen)

    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _feasible(other, requirement(middle)) else (low, middle)
    level = highest_level(programme, requirement, low=0.0, high=1.0)
    assert level.z == pytest.approx(low, rel=1e-6)
    assert level.proved
    _holds(programme, level, requirement)
