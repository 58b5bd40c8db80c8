"""Whoever reaches rank 0's port without the run's key neither takes a rank nor holds the gang up."""

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from support.job.process import Job, wait_until
from synergy_job.environment import ConfigError
from synergy_job.gang.door import HANDSHAKE_S, MOST_STRANGERS, PER_ADDRESS, STRANGER_BYTES, Door
from synergy_job.gang.key import LEAST_KEY_BYTES, proof, proves, read_key
from synergy_job.wire import Connection

HELLO = {"job": "mnist", "namespace": "team", "run": 1, "world_size": 3, "rank": 1, "step": 0, "gpu_uuids": []}
OPEN_FILES = 512


def port_of(gang: Job) -> int:
    return int(gang.environ["SYNERGY_PEER_PORT"])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def leader_of(gang: Job) -> subprocess.Popen[str]:
    leader = gang.start(rank=0)
    wait_until(lambda: listens(port_of(gang)), "rank 0 to listen")
    return leader


def members_of(gang: Job) -> list[subprocess.Popen[str]]:
    return [gang.start(rank=rank) for rank in (1, 2)]


def all_end_well(gang: Job, processes: list[subprocess.Popen[str]]) -> bool:
    ended = [gang.end(process) for process in processes]
    assert [code for code, _ in ended] == [0, 0, 0], [output for _, output in ended]
    return True


class Talker:
    """Somebody who speaks the protocol by hand."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self._lines = self.socket.makefile("rb")

    def say(self, **message: Any) -> None:
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def hear(self) -> dict[str, Any] | None:
        """The next message; None at the end of the conversation."""
        try:
            line = self._lines.readline()
        except ConnectionResetError:
            return None
        return dict(json.loads(line)) if line else None

    def __enter__(self) -> "Talker":
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self.socket.close()


def test_a_rank_cannot_be_taken_without_the_key(gang: Job) -> None:
    """Whoever knows the job's name, run and size says a hello that is right in everything else."""
    leader = leader_of(gang)
    with Talker(port_of(gang)) as plain, Talker(port_of(gang)) as guesser:
        plain.say(hello=HELLO)
        assert "does not prove" in str(plain.hear())
        assert plain.hear() is None
        hello = {**HELLO, "nonce": "00" * 16}
        guesser.say(hello=hello)
        heard = guesser.hear()
        assert heard is not None
        guesser.say(proof=proof(b"f" * 64, "member", hello, heard["challenge"]))
        assert "does not prove" in str(guesser.hear())
        assert guesser.hear() is None
        assert all_end_well(gang, [leader, *members_of(gang)])


def test_what_the_leader_said_or_a_member_said_before_proves_nothing(gang: Job) -> None:
    leader = leader_of(gang)
    hello = {**HELLO, "nonce": "11" * 16}
    key = read_key(gang.environ["SYNERGY_GANG_KEY_FILE"])
    assert key is not None
    with Talker(port_of(gang)) as first, Talker(port_of(gang)) as second:
        first.say(hello=hello)
        one = first.hear()
        second.say(hello=hello)
        two = second.hear()
        assert one is not None
        assert two is not None
        assert one["challenge"] != two["challenge"]
        first.say(proof=one["proof"])  # reflected
        assert "does not prove" in str(first.hear())
        second.say(proof=proof(key, "member", hello, one["challenge"]))  # replayed
        assert "does not prove" in str(second.hear())
    assert all_end_well(gang, [leader, *members_of(gang)])


def test_only_who_has_proved_to_know_the_key_hears_which_run_it_is(gang: Job) -> None:
    leader = leader_of(gang)
    key = read_key(gang.environ["SYNERGY_GANG_KEY_FILE"])
    assert key is not None
    hello = {**HELLO, "run": 7, "nonce": "22" * 16}
    with Talker(port_of(gang)) as stranger, Talker(port_of(gang)) as sibling:
        stranger.say(hello={**HELLO, "run": 7})
        assert "run 1" not in str(stranger.hear())
        sibling.say(hello=hello)
        heard = sibling.hear()
        assert heard is not None
        sibling.say(proof=proof(key, "member", hello, heard["challenge"]))
        assert sibling.hear() == {"refused": "this is run 1, not 7"}
    assert all_end_well(gang, [leader, *members_of(gang)])


def test_a_crowd_of_silent_strangers_keeps_nobody_out(gang: Job) -> None:
    """Rank 0 may open 512 files; 900 connections from many addresses and one come and stay."""
    wrapper = gang.folder / "wrapper.py"
    wrapper.write_text(
        "import resource, runpy, sys\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({OPEN_FILES}, {OPEN_FILES}))\n"
        f"sys.argv[0] = {str(gang.script)!r}\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    script, gang.script = gang.script, wrapper
    leader = leader_of(gang)
    gang.script = script
    with ExitStack() as stack:
        for number in range(900):
            address = f"127.0.{number % 100}.66" if number % 2 else "127.0.0.66"
            with suppress(OSError):
                stack.enter_context(
                    socket.create_connection(("127.0.0.1", port_of(gang)), 5, source_address=(address, 0))
                )
        begun = time.monotonic()
        assert all_end_well(gang, [leader, *members_of(gang)])
        assert time.monotonic() - begun < 15


def test_a_stranger_who_dawdles_or_says_too_much_is_sent_away(gang: Job) -> None:
    leader = leader_of(gang)
    with Talker(port_of(gang)) as slow, Talker(port_of(gang)) as chatty:
        begun = time.monotonic()
        slow.say(hello={**HELLO, "nonce": "33" * 16})
        assert slow.hear()
        with suppress(OSError):
            for _ in range(20):
                chatty.socket.sendall(b" " * (STRANGER_BYTES // 8) + b"\n")
        assert chatty.hear() is None
        assert time.monotonic() - begun < HANDSHAKE_S
        assert slow.hear() is None
        assert time.monotonic() - begun >= HANDSHAKE_S - 0.5
    assert all_end_well(gang, [leader, *members_of(gang)])


def test_the_port_is_closed_once_the_gang_is_complete(gang: Job) -> None:
    processes = [gang.start("--step-ms", "50", rank=rank) for rank in range(3)]
    gang.wait_for_body(3)
    wait_until(lambda: not listens(port_of(gang)), "the port to close")
    assert len(gang.bodies(0)) < 60
    assert all_end_well(gang, processes)


def test_a_false_rank_0_is_not_obeyed(gang: Job) -> None:
    with socket.create_server(("", port_of(gang))) as listener:
        member = gang.start(rank=1)
        sock, _ = listener.accept()
        with sock:
            sock.recv(4096)
            sock.sendall(b'{"challenge": "00", "proof": "00"}\n{"welcome": true}\n{"go": 60}\n')
            code, output = gang.end(member)
    assert code == 1
    assert "is not rank 0: it does not prove that it knows the run's key" in output
    assert not (gang.folder / "bodies-1").exists()


@pytest.mark.parametrize("answer", [b"", b'{"challenge": "00"'])
def test_a_handshake_that_breaks_off_is_begun_anew(gang: Job, answer: bytes) -> None:
    """As when rank 0 had to make room for others just then."""
    with socket.create_server(("", port_of(gang))) as listener:
        member = gang.start(rank=1)
        sock, _ = listener.accept()
        with sock:
            sock.recv(4096)
            sock.sendall(answer)
    assert all_end_well(gang, [gang.start(rank=0), member, gang.start(rank=2)])


@pytest.mark.parametrize(
    ("rank", "says"),
    [(1, "it does not prove that it knows the run's key"), (0, "it has a key of the run, and rank 0 has none")],
)
def test_a_process_without_the_key_that_the_others_have_is_told_so(gang: Job, rank: int, says: str) -> None:
    processes = [gang.start(rank=0, **({"SYNERGY_GANG_KEY_FILE": ""} if rank == 0 else {}))]
    member = gang.start(rank=1, **({"SYNERGY_GANG_KEY_FILE": ""} if rank == 1 else {}))
    code, output = gang.end(member)
    assert code == 1
    assert f"PeerLostError: rank 0 refuses this process: {says}" in output
    for process in processes:
        process.kill()
        gang.end(process)


def test_a_key_that_cannot_be_read_or_is_none_is_named(tmp_path: Path) -> None:
    assert read_key("") is None
    with pytest.raises(ConfigError, match=r"SYNERGY_GANG_KEY_FILE cannot be read: .*No such file"):
        read_key(str(tmp_path / "none"))
    short = tmp_path / "short"
    short.write_text("secret\n")
    with pytest.raises(ConfigError, match=f"holds 6 bytes: a key has at least {LEAST_KEY_BYTES}"):
        read_key(str(short))


@pytest.mark.parametrize("said", [None, 7, "", "\u00e9", ["x"], "00" * 32])
def test_only_the_very_proof_proves(said: object) -> None:
    key = b"k" * 64
    right = proof(key, "member", HELLO, "c")
    assert proves(right, key, "member", HELLO, "c")
    assert not proves(said, key, "member", HELLO, "c")
    for other in (
        proof(b"j" * 64, "member", HELLO, "c"),
        proof(key, "leader", HELLO, "c"),
        proof(key, "member", {**HELLO, "run": 2}, "c"),
        proof(key, "member", HELLO, "d"),
    ):
        assert not proves(other, key, "member", HELLO, "c")


@pytest.fixture
def connections() -> Iterator[list[Connection]]:
    """More than a door holds, to nowhere."""
    made = [Connection(socket.socket()) for _ in range(MOST_STRANGERS + 5)]
    yield made
    for one in made:
        one.close()


def test_an_address_displaces_itself_and_a_crowd_the_most_crowded(connections: list[Connection]) -> None:
    now = 0.0
    door = Door(lambda: now)
    flood, rest = connections[: PER_ADDRESS + 5], connections[PER_ADDRESS + 5 :]
    gone = [one for connection in flood for one in door.come(connection, "10.6.6.6")]
    assert gone == flood[:5]
    assert len(door) == PER_ADDRESS
    others = [one for number, connection in enumerate(rest) for one in door.come(connection, f"10.0.0.{number}")]
    assert len(door) == MOST_STRANGERS
    assert set(others) <= set(flood), "each of the others has one connection"
    now = HANDSHAKE_S + 1
    assert set(door.late()) == set(door.all())
    for connection in door.all():
        door.leave(connection)
    assert len(door) == 0
    assert rest[-1].most_bytes is None
