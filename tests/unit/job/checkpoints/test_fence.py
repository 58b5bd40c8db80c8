"""How long a worker goes on without an answer, and what it still writes."""

import logging
from pathlib import Path

import pytest

from support.job.lease_server import LeaseServer, go_on, leave_in
from support.job.process import wait_until
from synergy_job import Checkpoint, FencedError
from synergy_job.checkpoints import fence as fence_module
from synergy_job.checkpoints.fence import REFUSED_SECONDS, Fence
from synergy_job.departure import Departure
from synergy_job.lease.client import LeaseClient, Report
from synergy_job.lease.reporter import Reporter


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(fence_module, "now", made)
    return made


def test_unheard_a_worker_leaves_while_it_may_still_save_and_later_saves_no_more(clock: Clock) -> None:
    fence = Fence(600.0)
    fence.heard(clock.now)
    clock.now += 400.0
    assert not fence.should_leave
    clock.now += 30.0
    assert (fence.should_leave, fence.may_save, fence.shut) == (True, True, "")
    fence.check()
    clock.now += 170.0
    assert (fence.may_save, fence.shut) == (False, "no answer of the extender for 600 s")
    with pytest.raises(FencedError, match="no checkpoint is written: no answer"):
        fence.check()
    fence.heard(clock.now)
    assert fence.shut, "once shut it stays so: the next run may have begun"


def test_the_time_counts_from_the_question_not_from_the_answer(clock: Clock) -> None:
    fence = Fence(600.0)
    asked_at = clock.now
    clock.now += 500.0  # an answer that was on its way for long
    fence.heard(asked_at)
    clock.now += 100.0
    assert fence.shut


def test_a_refused_lease_stops_checkpoints_at_once_and_the_worker_after_a_while(clock: Clock) -> None:
    fence = Fence(600.0)
    fence.refused("401")
    assert not fence.may_save
    assert not fence.should_leave
    fence.heard(clock.now)
    assert fence.may_save, "a token that was being rotated"
    for _ in range(3):
        fence.refused("403")
        clock.now += REFUSED_SECONDS / 3
    assert fence.shut == ""
    fence.refused("403")
    assert fence.shut == "the extender refuses this pod's lease: 403"


def test_a_refusal_that_is_not_repeated_counts_no_more_after_a_while(clock: Clock) -> None:
    """As where the extender is away since: the worker leaves by the fence's time, with a last checkpoint."""
    fence = Fence(600.0)
    fence.refused("401")
    clock.now += REFUSED_SECONDS - 1
    assert not fence.may_save
    clock.now += 1
    assert fence.may_save
    fence.check()
    clock.now += 540.0
    assert not fence.may_save, "its time is over all the same"


def test_a_worker_whose_fence_was_shut_leaves_though_it_is_answered_again(
    clock: Clock, lease_server: LeaseServer, lease_client: LeaseClient
) -> None:
    """As after its machine stood still: the right to write does not come back, so training on is in vain."""
    fence, departure = Fence(600.0), Departure()
    clock.now += 600.0
    assert fence.shut
    lease_server.answer = lambda report: go_on(0.1)
    Reporter(lease_client, departure, lambda done: Report(7, 5, 1.0, done=done), None, fence).start()
    wait_until(departure.due, "the request to leave")


def test_being_told_to_leave_does_not_extend_the_time(
    clock: Clock, lease_server: LeaseServer, lease_client: LeaseClient
) -> None:
    """The pod may have been deleted long before a worker that was cut off hears of it."""
    fence, departure = Fence(600.0), Departure()
    fence.refused("401")
    clock.now += 500.0
    lease_server.answer = lambda report: leave_in(0.0)
    Reporter(lease_client, departure, lambda done: Report(7, 5, 1.0, done=done), None, fence).start()
    wait_until(departure.due, "the request to leave")
    assert fence.may_save, "it is told to leave, not refused"
    clock.now += 100.0
    assert fence.shut == "no answer of the extender for 600 s"


def test_the_process_fence_guards_the_files(clock: Clock, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "model")
    fence = Fence(10.0)
    fence_module.install(fence)
    try:
        checkpoint.write("in time")
        clock.now += 10.0
        with pytest.raises(FencedError):
            checkpoint.write("late")
    finally:
        fence_module.install(None)
    assert checkpoint.read() == "in time"


def test_a_worker_that_is_refused_asks_to_leave(
    lease_server: LeaseServer,
    lease_client: LeaseClient,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(fence_module, "REFUSED_SECONDS", 0.5)
    monkeypatch.setattr("synergy_job.lease.reporter.FIRST_RETRY_S", 0.2)
    lease_server.answer = lambda report: (403, b"the token is of no worker pod")
    departure, fence = Departure(), Fence(600.0)
    reporter = Reporter(lease_client, departure, lambda done: Report(7, 5, 1.0, done=done), None, fence)
    with caplog.at_level(logging.WARNING):
        reporter.start()
        wait_until(departure.due, "the request to leave")
    assert "the extender refuses this pod's lease" in fence.shut
    assert "this worker leaves" in caplog.text
    assert len(lease_server.reports) >= 3
