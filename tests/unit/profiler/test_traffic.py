"""What workers send in a step, from the kernel's counters and from NCCL's log."""

import json
import socket
import struct

import pytest

from support.counters import text
from synergy_job.sockets import Connection, parse_message, sent_between, socket_inodes
from synergy_profiler.measurement import Measurement
from synergy_profiler.result import Measured
from synergy_profiler.traffic.measure import Traffic, of_calls, of_sockets, overlap
from synergy_profiler.traffic.nccl import log_environment, read_calls, sent_bytes

CALLS = [("Broadcast", 1024), ("AllReduce", 4_000_000), ("AllReduce", 6_000_000), ("ReduceScatter", 1000),
         ("AllGather", 2000)]  # fmt: skip
A, B = ("10.0.0.1", 40000), ("10.0.0.2", 29500)


def test_nccls_log_tells_calls_and_bytes() -> None:
    assert list(read_calls(text("nccl.log"))) == CALLS
    assert list(read_calls("")) == []


def test_what_a_ring_sends_of_each_call() -> None:
    assert sent_bytes("AllReduce", 1000, 4) == 1500
    assert sent_bytes("ReduceScatter", 250, 4) + sent_bytes("AllGather", 250, 4) == 1500
    assert sent_bytes("Broadcast", 1000, 4) == 750


def test_traffic_by_nccls_log_is_a_mean_over_workers_and_steps() -> None:
    reduces = [("AllReduce", 4_000_000), ("AllReduce", 6_000_000)]
    found = of_calls({"a": reduces * 5, "b": reduces * 5}, 4, 5)
    assert found == Traffic("NCCL", 4, 15_000_000, None, 10_000_000, 6_000_000)
    assert found.model_bytes == 10_000_000
    assert of_calls({}, 4, 5) is None
    assert of_calls({"a": [("AllReduce", 8)]}, 4, 5) is None, "a loss that is averaged is no training"


def test_traffic_by_sockets_counts_both_ends() -> None:
    sent = [Connection(A, B, 1, 5_000_000, 0.2), Connection(B, A, 2, 3_000_000, 0.4)]
    found = of_sockets(sent, 2, 2)
    assert found == Traffic("Sockets", 2, 2_000_000, 0.2)
    assert found.model_bytes == 2_000_000
    assert of_sockets([], 2, 2) is None
    assert of_sockets([Connection(A, B, 1, 9000, 0.0)], 2, 2) is None


def test_a_connection_that_was_made_meanwhile_counts_whole() -> None:
    old, new = Connection(A, B, 1, 100, 1.0), Connection(B, A, 2, 70, 0.5)
    later = Connection(A, B, 1, 150, 1.25)
    assert sent_between({7: old}, {7: later, 8: new}) == [Connection(A, B, 1, 50, 0.25), new]


@pytest.mark.parametrize(
    ("sending", "step", "alone", "expected"),
    [
        (0.2, 1.2, 1.0, 0.0),
        (0.5, 1.25, 1.0, 0.25),
        (1.5, 1.5, 1.0, 1.0),
        (0.2, 1.21, 1.0, 0.0),
        (0.2, 1.0, 1.0, None),
        (0.2, 1.5, 1.0, None),
        (0.2, 0.9, 1.0, None),
    ],
)
def test_overlap_is_what_sending_does_not_add(
    sending: float, step: float, alone: float, expected: float | None
) -> None:
    assert overlap(sending, step, alone) == (None if expected is None else pytest.approx(expected))


def test_nccl_writes_its_log_unless_the_user_has_set_it() -> None:
    assert log_environment({}, "/x")["NCCL_DEBUG_FILE"] == "/x/nccl.%p"
    assert log_environment({"NCCL_DEBUG": "WARN"}, "/x") == {}


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_the_kernels_message(family: int) -> None:
    width = 4 if family == socket.AF_INET else 16
    mapped = b"" if width == 4 else b"\0" * 10 + b"\xff\xff"
    one, other = (mapped + socket.inet_aton(address) for address in ("10.0.0.1", "10.0.0.2"))
    ends = struct.pack("!HH", 40000, 29500) + one.ljust(16, b"\0") + other.ljust(16, b"\0") + struct.pack("=IQ", 0, 77)
    body = struct.pack("=BBBB", family, 1, 0, 0) + ends + struct.pack("=IIIII", 0, 0, 0, 0, 4242)
    info = bytearray(232)
    struct.pack_into("=Q", info, 120, 5000)
    struct.pack_into("=Q", info, 168, 250_000)
    other_attribute = struct.pack("=HHI", 8, 1, 0)
    whole = body + other_attribute + struct.pack("=HH", 4 + len(info), 2) + bytes(info)
    assert parse_message(whole) == (77, Connection(A, B, 4242, 5000, 0.25))
    short = body + struct.pack("=HH", 4 + 100, 2) + bytes(100)
    for nothing in (whole[:40], body, short, body + b"\0\0\0\0"):
        assert parse_message(nothing) is None


def test_a_process_that_has_ended_has_no_sockets() -> None:
    assert socket_inodes([1 << 30]) == set()


def test_the_result_tells_what_was_sent() -> None:
    measured = Measured(Measurement(1.0, 0.0, 5, 5.0), 1, None, 7, False, traffic=Traffic("Sockets", 2, 80, 0.5))
    assert json.loads(measured.to_json())["traffic"] == {
        "source": "Sockets", "workers": 2, "bytes_per_step": 80, "sending_seconds": 0.5, "model_bytes": 80
    }  # fmt: skip
