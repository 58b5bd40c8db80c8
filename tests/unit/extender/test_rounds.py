"""Rounds are stretches of Unix time."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_extender.rounds import Rounds, Timetable


@pytest.mark.parametrize(("seconds", "lead"), [(5, 2.0), (20, 2.0), (60, 6.0), (300, 15.0), (3600, 15.0)])
def test_the_lead_is_a_tenth_of_a_round_within_bounds(seconds: int, lead: float) -> None:
    assert Rounds(seconds).lead_s == lead


def test_round_k_covers_k_to_k_plus_one() -> None:
    rounds = Rounds(20)
    assert [rounds.at(now) for now in (0.0, 19.99, 20.0, 39.0)] == [0, 0, 1, 1]
    assert (rounds.start(1), rounds.end(1), rounds.plan_time(1)) == (20.0, 40.0, 18.0)


@given(st.integers(5, 86400), st.floats(0, 4e9))
def test_a_round_is_due_from_its_plan_time_on(seconds: int, now: float) -> None:
    rounds = Rounds(seconds)
    due = rounds.due(now)
    assert rounds.plan_time(due) <= now + 1e-6
    assert now - 1e-6 < rounds.plan_time(due + 1)
    assert rounds.at(now) <= due <= rounds.at(now) + 1


def _planned_at(rounds: Rounds, steps: list[tuple[float, float]]) -> tuple[list[float], float]:
    """When (true seconds) rounds were planned while the clock was stepped: `steps` are (true seconds until, offset
    then). A look at the clock every half second, as the loop has one at each change."""
    true_s, offset, planned = 1e6, 0.0, []
    timetable = Timetable(rounds, true_s)
    for seconds, step in [*steps, (3.0 * rounds.seconds, 0.0)]:
        until = true_s + seconds
        while true_s < until:
            due = timetable.due(true_s + offset)
            if due is not None:
                timetable.planned = due
                planned.append(true_s)
            true_s += 0.5
        offset += step
    return planned, true_s


@given(st.sampled_from((5, 20, 60)), st.lists(st.tuples(st.floats(0, 200), st.floats(-1e5, 1e5)), max_size=6))
def test_a_step_of_the_clock_costs_one_round_at_most(seconds: int, steps: list[tuple[float, float]]) -> None:
    planned, ended = _planned_at(Rounds(seconds), steps)
    gaps = [later - earlier for earlier, later in pairwise([1e6, *planned, ended])]
    quiet = [gap for gap in gaps if gap > 2 * seconds + 1.0]
    stepped = len(steps)
    assert not quiet if stepped == 0 else max(gaps) <= 2.0 * seconds * (1 + stepped) + 1.0
    # once the clock is left alone, rounds are planned again within one round and the step's own
    assert planned
    assert ended - planned[-1] <= seconds + 1.0
    assert sum(at > ended - 3.0 * seconds for at in planned) >= 2


def test_a_clock_that_was_a_day_ahead_and_is_right_again_plans_the_next_round_in_time() -> None:
    timetable = Timetable(Rounds(300), 1e6)
    ahead = timetable.due(1e6 + 86_400)
    assert ahead is not None
    timetable.planned = ahead
    assert timetable.due(1e6 + 1) is None
    assert timetable.due(1e6 + 300) == Rounds(300).due(1e6 + 300)
