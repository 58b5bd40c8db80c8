"""What a process sends its gang: real connections on this machine."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from synergy_job.loop import sent
from synergy_job.loop.sent import SETTLE_STEPS, SentMeter
from synergy_job.sockets import SocketsError

PEER = ("127.0.0.1",)


@pytest.fixture
def pipe() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection of this process."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        client = stack.enter_context(socket.create_connection(server.getsockname()))
        yield client, stack.enter_context(server.accept()[0])


def send(pipe: tuple[socket.socket, socket.socket], count: int) -> None:
    for _ in range(count):
        pipe[0].sendall(b"x" * 8192)
        left = 8192
        while left:
            left -= len(pipe[1].recv(left))
    time.sleep(0.1)


def test_bytes_of_a_step_are_counted_from_the_first_look_on(pipe: tuple[socket.socket, socket.socket]) -> None:
    meter = SentMeter(10, 2)
    send(pipe, 500)
    assert meter.per_step(10, PEER) is None
    assert meter.per_step(10 + SETTLE_STEPS, PEER) is None, "where it begins"
    send(pipe, 100)
    assert meter.per_step(20 + SETTLE_STEPS, PEER) is None, "too few steps"
    assert meter.per_step(60 + SETTLE_STEPS, PEER) == pytest.approx(2 * 8192, rel=0.01)
    assert meter.per_step(100_000, ("::ffff:127.0.0.1",)) is None, "next to nothing"


def test_a_process_alone_sends_nobody_anything(pipe: tuple[socket.socket, socket.socket]) -> None:
    meter = SentMeter(0, 1)
    assert meter.per_step(10, PEER) is meter.per_step(1000, PEER) is None


def test_a_kernel_that_tells_nothing_stops_no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise SocketsError("no")

    monkeypatch.setattr(sent, "connections", refused)
    assert SentMeter(0, 2).per_step(100, PEER) is None
    assert SentMeter(0, 2).per_step(100, ("no address",)) is None


def test_over_rdma_the_sockets_are_empty_and_the_pod_s_own_device_counts(
    pipe: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = {"mlx5_2/1": 10_000_000}
    monkeypatch.setattr(sent.rdma, "sent_bytes", lambda: dict(counted))
    meter = SentMeter(0, 2)
    assert meter.per_step(SETTLE_STEPS, PEER) is None
    counted["mlx5_2/1"] += 50 * 1_000_000
    counted["mlx5_3/1"] = 1 << 50  # a port that was not there before
    assert meter.per_step(SETTLE_STEPS + 50, PEER) == 1_000_000
    send(pipe, 25_000)
    assert meter.per_step(SETTLE_STEPS + 50, PEER) == pytest.approx(25_000 * 8192 / 50, rel=0.01), "the larger counts"
