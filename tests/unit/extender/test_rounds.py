"""Rounds are stretches of Unix time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_extender.rounds import Rounds


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
