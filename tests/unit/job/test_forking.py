"""Forks and the library's threads: none meets a thread inside OpenSSL, and none waits for the network."""

import gc
import hmac
import os
import signal
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.job.lease_server import Authority, LeaseServer, go_on, serve_leases
from synergy_devcluster.programs.processes import wait_for
from synergy_job.environment import LeaseAccess
from synergy_job.forking import undivided
from synergy_job.gang.key import proof
from synergy_job.lease.client import LeaseClient, LeaseError, Report

pytestmark = [
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
REPORT = Report(step=1, checkpoint_step=0, steps_per_second=1.0)


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Sockets that nobody closed are told here, and in no later test."""
    yield
    gc.collect()


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


class Interrupted(Exception):  # noqa: N818 - what a signal's handler raises
    """By a signal."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_in_the_child_the_way_is_free_also_where_a_signal_ended_the_wait() -> None:
    inside, leaves = threading.Event(), threading.Event()

    def enter() -> None:
        with undivided:
            inside.set()
            leaves.wait()

    def interrupt(*_: object) -> None:
        raise Interrupted

    thread = threading.Thread(target=enter)
    thread.start()
    inside.wait()
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        assert forked() == 0
    finally:
        signal.signal(signal.SIGALRM, before)
        leaves.set()
        thread.join()
    assert forked() == 0


def test_openssl_is_entered_inside_alone(
    authority: Authority, token_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered: dict[str, set[bool]] = {}

    def watch(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def watched(*arguments: Any, **named: Any) -> Any:
            if threading.current_thread() is reporter:
                entered.setdefault(name, set()).add(undivided._is_owned())  # type: ignore[attr-defined]
            return real(*arguments, **named)

        monkeypatch.setattr(owner, name, watched)

    def report() -> None:
        client = LeaseClient(LeaseAccess(server.url, str(token_file), server.ca_cert))
        client.send(REPORT)
        client.close()
        proof(b"key", "leader", {}, "challenge")

    with serve_leases(authority) as server:
        reporter = threading.Thread(target=report)
        for name in ("do_handshake", "read", "send", "_real_close"):
            watch(ssl.SSLSocket, name)
        for name in ("wrap_socket", "load_verify_locations"):
            watch(ssl.SSLContext, name)
        watch(hmac, "new")
        reporter.start()
        reporter.join()
    names = {"do_handshake", "read", "send", "_real_close", "wrap_socket", "load_verify_locations", "new"}
    assert entered == {name: {True} for name in names}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_client_that_is_forgotten_waits_for_nobody(authority: Authority, token_file: Path) -> None:
    with serve_leases(authority) as server:
        clients = [LeaseClient(LeaseAccess(server.url, str(token_file), server.ca_cert))]
        clients[0].send(REPORT)
        with undivided:
            other = threading.Thread(target=clients.clear)
            other.start()
            other.join(10)
            assert not other.is_alive()


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
    assert wait_for(lambda: bool(server.reports), 10, 0.01)
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
