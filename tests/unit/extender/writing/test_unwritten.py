"""Jobs whose writes are refused wait longer each time, and are told why once."""

import pytest

from support.extender.cluster import job
from synergy_api.reasons import Reason
from synergy_extender.writing.unwritten import FIRST_WAIT_S, LONGEST_BUSY_WAIT_S, LONGEST_WAIT_S, Unwritten, is_busy
from synergy_kube import ApiError

LARGE = ApiError(500, "", "etcdserver: request is too large")


class World:
    def __init__(self) -> None:
        self.now = 0.0
        self.unwritten = Unwritten(lambda: self.now)


def test_the_wait_doubles_and_others_are_not_concerned() -> None:
    world, bad, good = World(), job("bad"), job("good")
    waits = []
    for _ in range(9):
        world.unwritten.refused(bad, LARGE, only_told=False)
        wait = world.unwritten.next_in_s
        assert wait is not None
        waits.append(wait)
        assert not world.unwritten.may_write(bad, only_told=False)
        assert world.unwritten.may_write(good, only_told=False)
        assert set(world.unwritten.out_of_plans()) == {bad.key}
        world.now += wait
        assert world.unwritten.may_write(bad, only_told=False)
        assert world.unwritten.out_of_plans() == {}
    assert waits[:3] == [FIRST_WAIT_S, 2 * FIRST_WAIT_S, 4 * FIRST_WAIT_S]
    assert waits[-1] == LONGEST_WAIT_S


def test_the_api_server_may_ask_for_a_longer_wait() -> None:
    world = World()
    world.unwritten.refused(job("bad"), ApiError(429, "TooManyRequests", "later", 40.0), only_told=False)
    assert world.unwritten.next_in_s == pytest.approx(40.0)


def test_why_it_waits_is_tried_once_and_told_once() -> None:
    world, bad = World(), job("bad")
    told = world.unwritten.refused(bad, LARGE, only_told=False)
    assert told is not None
    assert told.reason is Reason.STATUS_REFUSED
    assert "request is too large" in told.message
    assert world.unwritten.may_write(bad, only_told=True)
    assert world.unwritten.refused(bad, LARGE, only_told=True) is None
    assert world.unwritten.next_in_s == pytest.approx(FIRST_WAIT_S)
    assert not world.unwritten.may_write(bad, only_told=True)


def test_telling_why_does_not_make_it_well_and_a_real_write_does() -> None:
    world, bad = World(), job("bad")
    world.unwritten.refused(bad, LARGE, only_told=False)
    world.unwritten.written(bad, only_told=True)
    assert not world.unwritten.may_write(bad, only_told=True)
    assert set(world.unwritten.out_of_plans()) == {bad.key}
    world.now += FIRST_WAIT_S
    world.unwritten.written(bad, only_told=False)
    assert len(world.unwritten) == 0


def test_a_words_only_write_that_is_refused_after_the_wait_waits_again() -> None:
    world, bad = World(), job("bad")
    world.unwritten.refused(bad, LARGE, only_told=False)
    world.now += FIRST_WAIT_S
    world.unwritten.refused(bad, LARGE, only_told=True)
    assert world.unwritten.next_in_s == pytest.approx(2 * FIRST_WAIT_S)


def test_another_job_of_the_same_name_begins_anew_and_gone_jobs_are_forgotten() -> None:
    world, bad = World(), job("bad")
    world.unwritten.refused(bad, LARGE, only_told=False)
    assert world.unwritten.may_write(job("bad", uid="another"), only_told=False)
    world.unwritten.keep([])
    assert len(world.unwritten) == 0


def test_a_busy_api_server_is_waited_for_briefly_and_told_only_when_it_lasts() -> None:
    world, one = World(), job("one")
    busy = ApiError(503, "ServiceUnavailable", "the server is currently unable to handle the request")
    told = []
    for _ in range(8):
        told.append(world.unwritten.refused(one, busy, only_told=False) is not None)
        wait = world.unwritten.next_in_s
        assert wait is not None
        assert wait <= LONGEST_BUSY_WAIT_S
        world.now += wait
    assert told == [False, False, False, True, False, False, False, False]
    assert not is_busy(LARGE)
    assert is_busy(busy)
