"""The thread that renews the lease."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.job.lease_server import Authority, LeaseServer, go_on, leave_in
from support.job.process import free_port, wait_until
from synergy_job.departure import Departure
from synergy_job.environment import LeaseAccess
from synergy_job.lease.client import LeaseClient, Report
from synergy_job.lease.reporter import LONGEST_RETRY_S, Reporter, retry_delay


def progress(done: bool) -> Report:
    return Report(step=7, checkpoint_step=5, steps_per_second=1.0, done=done)


@pytest.fixture
def departure() -> Departure:
    return Departure()


@pytest.fixture
def reporter(lease_client: LeaseClient, departure: Departure) -> Iterator[Reporter]:
    reporter = Reporter(lease_client, departure, progress)
    yield reporter
    reporter.stop()


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_retries_are_bounded_and_grow(failures: int, fraction: float) -> None:
    assert 0.5 <= retry_delay(failures, fraction) <= LONGEST_RETRY_S
    assert retry_delay(failures + 1, fraction) >= retry_delay(failures, fraction)


def test_the_first_report_is_sent_at_once_and_the_next_when_the_extender_says(
    reporter: Reporter, lease_server: LeaseServer
) -> None:
    lease_server.answer = lambda report: go_on(0.5)
    reporter.start()
    wait_until(lambda: len(lease_server.reports) == 3, "three reports")
    reporter.stop()
    first, second, third = lease_server.moments[:3]
    assert 0.5 <= second - first < 1.5
    assert 0.5 <= third - second < 1.5


def test_a_yield_is_passed_on_and_is_the_last_report(
    reporter: Reporter, lease_server: LeaseServer, departure: Departure
) -> None:
    lease_server.answer = lambda report: leave_in(0.6)
    reporter.start()
    wait_until(lambda: departure.requested, "the request to leave")
    assert not departure.due()
    wait_until(departure.due, "the moment to leave")
    assert len(lease_server.reports) == 1
    reporter.stop()


def test_an_outage_is_warned_of_once_and_outlived(
    reporter: Reporter, lease_server: LeaseServer, departure: Departure, caplog: pytest.LogCaptureFixture
) -> None:
    answers = iter([(503, b"not ready"), (503, b"not ready"), go_on(), leave_in(0)])
    lease_server.answer = lambda report: next(answers)
    with caplog.at_level(logging.WARNING):
        reporter.start()
        wait_until(departure.due, "the moment to leave")
    assert [record.getMessage() for record in caplog.records] == [
        "lease not renewed, training goes on: the extender answered 503: b'not ready'",
        "lease reports get through again after 2 failures",
    ]


def test_the_final_report_is_tried_again(reporter: Reporter, lease_server: LeaseServer) -> None:
    answers = iter([(503, b""), go_on()])
    lease_server.answer = lambda report: next(answers)
    assert reporter.finish()
    assert [report["done"] for report in lease_server.reports] == [True, True]


def test_the_final_report_is_not_repeated_when_it_is_refused(reporter: Reporter, lease_server: LeaseServer) -> None:
    lease_server.answer = lambda report: (403, b"no worker pod")
    assert not reporter.finish()
    assert len(lease_server.reports) == 1


def test_the_final_report_gives_up_when_nobody_listens(token_file: Path, authority: Authority) -> None:
    access = LeaseAccess(f"https://127.0.0.1:{free_port()}", str(token_file), authority.pem)
    begun = time.monotonic()
    assert not Reporter(LeaseClient(access), Departure(), progress).finish()
    assert 2 < time.monotonic() - begun < 12
