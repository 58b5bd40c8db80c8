"""Forks and the library's threads: none meets a thread inside OpenSSL, and none waits for the network."""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.job.lease_server import Authority, LeaseServer, go_on, serve_leases
from synergy_job.environment import LeaseAccess
from synergy_job.forking import undivided
from synergy_job.lease.client import LeaseClient, LeaseError, Report

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
REPORT = Report(step=1, checkpoint_step=0, steps_per_second=1.0)


def forked() -> int:
    """The exit code of a child that enters `undivided`; that of an alarm where it waits for ever."""
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        with undivided:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_fork_waits_for_a_thread_inside() -> None:
    inside, order = threading.Event(), []

    def enter() -> None:
        with undivided:
            inside.set()
            threading.Event().wait(0.3)
            order.append("left")

    thread = threading.Thread(target=enter)
    thread.start()
    inside.wait()
    assert forked() == 0
    order.append("forked")
    thread.join()
    assert order == ["left", "forked"]


def test_who_is_inside_may_fork() -> None:
    with undivided:
        assert forked() == 0
    assert forked() == 0


@pytest.fixture
def stalled(authority: Authority, token_file: Path) -> Iterator[tuple[LeaseServer, LeaseClient, threading.Event]]:
    """A server that answers once the event is set, and a client."""
    answers = threading.Event()
    with serve_leases(authority) as server:

        def answer(_: object) -> tuple[int, bytes]:
            answers.wait()
            return go_on()

        server.answer = answer
        yield server, LeaseClient(LeaseAccess(server.url, str(token_file), server.ca_cert), timeout_s=60.0), answers
        answers.set()


def test_a_fork_does_not_wait_for_an_answer(stalled: tuple[LeaseServer, LeaseClient, threading.Event]) -> None:
    server, client, answers = stalled
    told: list[object] = []
    reporter = threading.Thread(target=lambda: told.append(client.send(REPORT)), daemon=True)
    reporter.start()
    while not server.reports:
        threading.Event().wait(0.01)
    assert forked() == 0
    assert told == [], "the report still waits for its answer"
    answers.set()
    reporter.join()
    assert len(told) == 1


def test_a_fork_does_not_wait_for_a_handshake_and_neither_does_a_report_for_ever(
    authority: Authority, token_file: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        access = LeaseAccess(f"https://127.0.0.1:{mute.getsockname()[1]}", str(token_file), authority.pem)
        failed: list[str] = []

        def report() -> None:
            with pytest.raises(LeaseError) as caught:
                LeaseClient(access, timeout_s=2.0).send(REPORT)
            failed.append(str(caught.value))

        reporter = threading.Thread(target=report)
        reporter.start()
        accepted, _ = mute.accept()
        with accepted:
            accepted.recv(1)  # the handshake has begun
            assert forked() == 0
            assert not failed
            reporter.join()
        assert failed == [f"127.0.0.1:{mute.getsockname()[1]} cannot be reached: timed out after 2 s"]
