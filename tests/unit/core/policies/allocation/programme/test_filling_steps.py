"""A step of progressive filling: the levels at a height, who rises on, and what is left over (Gavel, section 4.3)."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.planner.allocation import assert_valid, problem
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.budget import Budget, OutOfTimeError
from synergy_core.policies.allocation.policy import setting
from synergy_core.policies.allocation.problem import effective_throughput
from synergy_core.policies.allocation.programme.levels import Level
from synergy_core.policies.allocation.programme.progressive_filling import Fill, Group, _after, fill, fill_above

SIXTHS = st.integers(1, 24).map(lambda n: n / 8)


def _fill(limit: list[float], **more: Any) -> Fill:
    """Classes of one job that are no entity's; `more` by field."""
    count = len(limit)
    usual = {
        "level": np.zeros(count),
        "weight": np.ones(count),
        "members": np.ones(count),
        "rises": np.ones(count, dtype=bool),
        "groups": (),
        "on_their_own": np.zeros(count, dtype=bool),
    }
    told = {name: np.array(value) if isinstance(value, list) else value for name, value in more.items()}
    return Fill(limit=np.array(limit), **{**usual, **told})


def test_jobs_on_their_own_rise_at_their_weight_to_their_limit_and_others_stay() -> None:
    state = _fill(
        [1.0, 5.0, 9.0, 9.0],
        level=[0.5, 1.0, 2.0, 3.0],
        weight=[1.0, 2.0, 1.0, 1.0],
        rises=[True, True, False, True],
        on_their_own=[True, True, True, False],
    )
    assert state.at(0.25).tolist() == [0.75, 1.5, 2.0, 3.0]
    assert state.at(1.5).tolist() == [1.0, 4.0, 2.0, 3.0]
    assert state.at(3.0).tolist() == [1.0, 5.0, 2.0, 3.0]
    assert state.highest == 2.0
    assert state.nearest is None


def test_a_fifo_queue_serves_its_jobs_in_turn() -> None:
    queue = Group(np.array([2, 0, 3, 1]), weight=2.0, fifo=True)
    state = _fill([3.0, 4.0, 2.0, 9.0], level=[1.0, 0.0, 1.0, 9.0], rises=[True, True, True, False], groups=(queue,))
    assert state.at(0.25).tolist() == [1.0, 0.0, 1.5, 9.0]
    assert state.at(1.0).tolist() == [2.0, 0.0, 2.0, 9.0]
    assert state.at(2.0).tolist() == [3.0, 1.0, 2.0, 9.0]
    assert state.at(9.0).tolist() == [3.0, 4.0, 2.0, 9.0]
    assert state.highest == (2.0 + 4.0 + 1.0) / 2.0
    assert state.nearest == 0.5


def test_the_nearest_height_is_where_the_slowest_queue_has_served_its_first_job() -> None:
    queues = (Group(np.array([0, 1]), 1.0, fifo=True), Group(np.array([2]), 2.0, fifo=True), Group(np.array([3]), 1.0))
    state = _fill([3.0, 1.0, 8.0, 99.0], groups=queues)
    assert state.nearest == 4.0
    served = _fill([3.0, 1.0, 8.0, 99.0], groups=queues, rises=[False, True, False, True])
    assert served.nearest == 1.0
    assert _fill([1.0], groups=queues[2:3], rises=[False]).nearest is None


@given(rooms=st.lists(SIXTHS, min_size=1, max_size=5), data=st.data(), amount=st.integers(0, 60).map(lambda n: n / 4))
def test_fairness_within_an_entity_gives_by_weight_until_a_job_is_full(
    rooms: list[float], data: st.DataObject, amount: float
) -> None:
    count = len(rooms)
    weight = np.array(data.draw(st.lists(SIXTHS, min_size=count, max_size=count)))
    members = np.array(data.draw(st.lists(st.integers(1, 3), min_size=count, max_size=count)), dtype=float)
    room = np.array(rooms)
    group = Group(np.arange(count), weight=2.0)
    state = _fill((room + 1.0).tolist(), level=[1.0] * count, weight=weight, members=members, groups=(group,))
    given_ = state.at(amount / 2.0) - 1.0
    assert float(given_ @ members) == pytest.approx(min(amount, float(room @ members)))
    heights = given_ / weight
    full = given_ >= room * (1 - 1e-12)
    assert heights[~full] == pytest.approx(np.full((~full).sum(), heights.max()))
    assert (heights <= heights.max() + 1e-12).all()
    assert state.highest == pytest.approx(float(room @ members) / 2.0)


def test_of_a_fifo_queue_only_the_first_that_is_not_full_rises_on() -> None:
    queue = Group(np.array([0, 1, 2]), weight=1.0, fifo=True)
    fair = Group(np.array([3, 4]), weight=1.0)
    state = _fill([2.0] * 5, groups=(queue, fair))
    assert state.rising_now(np.array([2.0, 1.0, 0.0, 0.0, 2.0])).tolist() == [False, True, False, True, False]
    assert state.rising_now(np.array([1.0, 0.0, 0.0, 0.0, 0.0])).tolist() == [True, False, False, True, True]
    nearly = 2.0 * (1.0 - 1e-6)
    assert state.rising_now(np.array([nearly, 0.0, 0.0, 2.0, 2.0])).tolist() == [True, True, False, False, False]
    full = 2.0 * (1.0 - 1e-10)
    assert state.rising_now(np.array([full, nearly, 0.0, full, nearly])).tolist() == [False, True, True, False, True]
    ended = _fill([2.0] * 5, groups=(queue, fair), rises=[True, False, True, False, True])
    assert ended.rising_now(np.array([2.0, 0.0, 0.0, 0.0, 0.0])).tolist() == [False, False, True, False, True]


def _setting(speeds: list[list[float]], workers: list[float], **more: Any) -> Any:
    made = problem(speeds, workers, **more)
    return made, setting(made, Budget(), np.arange(len(speeds), dtype=float))


def _reached(here: Any, needed: list[float], *, proved: bool = True) -> Level:
    point = here.programme.solve(base=np.array(needed))
    none = np.zeros(len(needed))
    return Level(1.0, point.time, none, none + np.inf, proved)


def test_what_is_left_above_a_floor_is_divided_equally() -> None:
    """Three jobs on two GPUs: the first keeps its whole one, the second its half; a half is left for the last two."""
    made, here = _setting([[1.0]] * 3, [2])
    found = fill_above(here, _reached(here, [1.0, 0.25, 0.0]), np.array([1.0, 0.25, 0.0]), np.ones(3))
    assert found.status == "optimal"
    assert found.x[:, 0] == pytest.approx([1.0, 0.625, 0.375], abs=1e-6)
    units = fill_above(here, _reached(here, [1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0]), np.array([1.0, 3.0, 1.0]))
    assert units.x[:, 0] == pytest.approx([1.0, 0.75, 0.25], abs=1e-6)
    assert_valid(made, found.x)


def test_where_all_have_all_or_nothing_is_proved_what_was_reached_stays() -> None:
    _, here = _setting([[1.0]] * 2, [2])
    every = fill_above(here, _reached(here, [1.0, 1.0]), np.ones(2), np.ones(2))
    assert (every.status, every.x[:, 0].tolist()) == ("optimal", pytest.approx([1.0, 1.0]))
    cut = fill_above(here, _reached(here, [0.25, 0.5], proved=False), np.array([0.25, 0.5]), np.ones(2))
    assert cut.status == "time-limit"
    assert effective_throughput(problem([[1.0]] * 2, [2]), cut.x) == pytest.approx([0.25, 0.5])


def test_when_time_runs_out_above_the_floor_the_floor_stays() -> None:
    made = problem([[1.0]] * 2, [1])
    left = iter([9.0, 9.0])
    here = setting(made, Budget(lambda: next(left, 0.0)), np.arange(2.0))
    reached = _reached(here, [0.25, 0.125])
    next(left)
    found = fill_above(here, reached, np.array([0.25, 0.125]), np.ones(2))
    assert found.status == "time-limit"
    assert found.x[:, 0] == pytest.approx([0.25, 0.125])


def test_filling_ends_where_time_ends_with_what_it_reached() -> None:
    """Two jobs share a GPU; the third has one for itself, and rises on."""
    speeds = [[1.0, 0.0], [1.0, 0.0], [0.0, 2.0]]
    start = _fill([1.0, 1.0, 2.0], on_their_own=[True] * 3)
    for solves, ended in ((1, False), (99, True)):
        left = iter([9.0] * solves)
        here = setting(problem(speeds, [1, 1]), Budget(lambda left=left: next(left, 0.0)), np.arange(3.0))
        time, to_the_end = fill(here, start, np.ones(3))
        assert to_the_end == ended
        had = here.programme.throughput(time)
        assert had[:2] == pytest.approx([0.5, 0.5])
        assert (had[2] == pytest.approx(2.0)) or not ended
    with pytest.raises(OutOfTimeError):
        fill(setting(problem(speeds, [1, 1]), Budget(lambda: 0.0), np.arange(3.0)), start, np.ones(3))
    with pytest.raises(ValueError, match="no job could rise"):
        fill(here, _fill([1.0, 1.0, 2.0], rises=[False] * 3), np.ones(3))


def test_a_job_with_a_thousandth_of_the_others_speed_is_filled_as_exactly() -> None:
    made = problem([[1000.0, 1000.0], [1.0, 0.5], [1.0, 0.5]], [1, 1])
    found = solve(made, "max-min-fairness-water-filling")
    unit = made.throughputs.mean(axis=1)
    normalised = effective_throughput(made, found.x) / unit
    assert normalised == pytest.approx([normalised[0], normalised[1], normalised[1]], rel=1e-6)
    assert found.x.sum() == pytest.approx(2.0, abs=1e-6)


def test_where_no_price_tells_who_is_held_those_that_rise_end_so_that_filling_does() -> None:
    """No limit is reached either: the first job of the queue and the one on its own end."""
    queue = Group(np.array([0, 1]), weight=1.0, fifo=True)
    state = _fill([2.0] * 3, groups=(queue,), on_their_own=[False, False, True])
    nothing = np.zeros(3)
    after = _after(state, Level(0.5, nothing, nothing, nothing + np.inf, proved=True), np.ones(3))
    assert after.level.tolist() == [0.5, 0.0, 0.5]
    assert after.rises.tolist() == [False, True, False]
    held = _after(state, Level(0.5, nothing, np.array([0.0, 0.0, 3.0]), nothing + np.inf, proved=True), np.ones(3))
    assert held.rises.tolist() == [True, True, False]
    capped = _after(state, Level(0.5, nothing, nothing, np.array([0.25, 1.5, 0.5]), proved=True), np.ones(3))
    assert capped.limit.tolist() == [0.5, 1.5, 0.5]
    assert capped.rises.tolist() == [False, True, False]
    units = _after(state, Level(0.5, nothing, nothing, np.array([9.0, 1.5, 9.0]), proved=True), np.full(3, 3.0))
    assert units.limit.tolist() == [2.0, 0.5, 2.0]
