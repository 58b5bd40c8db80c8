"""How often reasons for waiting are told: so many a second of all jobs, and each job once a minute."""

import pytest

from synergy_api.reasons import Reason
from synergy_operator.actions import PostEvent
from synergy_operator.edge.waiting_turns import APART_SECONDS, PER_SECOND, WaitingTurns

TOLD = (PostEvent("Normal", Reason.NO_FREE_GPU, "needs 1 GPU"),)
ONE, OTHER = ("ns", "one"), ("ns", "other")


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_first_job_is_told_at_once_and_the_next_a_moment_later() -> None:
    turns = WaitingTurns(Clock())
    assert turns.turn_in(ONE, wanted=True) == 0.0
    assert turns.turn_in(OTHER, wanted=True) == pytest.approx(1 / PER_SECOND)


def test_of_a_thousand_jobs_each_has_a_turn_of_its_own_and_keeps_it() -> None:
    turns = WaitingTurns(Clock())
    keys = [("ns", f"job-{at}") for at in range(1000)]
    first = [turns.turn_in(key, wanted=True) for key in keys]
    assert max(first) == pytest.approx(999 / PER_SECOND)
    assert len(set(first)) == 1000
    assert [turns.turn_in(key, wanted=True) for key in keys] == first


def test_a_job_that_has_told_waits_a_minute() -> None:
    clock = Clock()
    turns = WaitingTurns(clock)
    turns.turn_in(ONE, wanted=True)
    turns.carried_out(ONE, TOLD)
    clock.now += 10
    assert turns.turn_in(ONE, wanted=True) == pytest.approx(APART_SECONDS - 10)
    assert turns.turn_in(OTHER, wanted=True) <= 1 / PER_SECOND, "it holds up no other job"
    clock.now += APART_SECONDS
    assert turns.turn_in(ONE, wanted=True) == 0.0


def test_other_events_cost_no_turn() -> None:
    turns = WaitingTurns(Clock())
    turns.turn_in(ONE, wanted=True)
    turns.carried_out(ONE, (PostEvent("Normal", Reason.WORKERS_RUNNING, "run 1"),))
    assert turns.turn_in(ONE, wanted=True) == 0.0


def test_a_job_that_no_longer_wants_to_tell_is_not_held_up() -> None:
    clock = Clock()
    turns = WaitingTurns(clock)
    turns.turn_in(ONE, wanted=True)
    turns.carried_out(ONE, TOLD)
    assert turns.turn_in(ONE, wanted=True) > 0
    assert turns.turn_in(ONE, wanted=False) == 0.0


def test_a_job_of_the_same_name_begins_anew() -> None:
    clock = Clock()
    turns = WaitingTurns(clock)
    turns.turn_in(ONE, wanted=True)
    turns.carried_out(ONE, TOLD)
    turns.forget(ONE)
    clock.now += 1
    assert turns.turn_in(ONE, wanted=True) == 0.0
