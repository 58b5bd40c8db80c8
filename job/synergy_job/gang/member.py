"""A rank above 0 of a gang: begins a step when the leader grants it, leaves after the step the leader names."""

from __future__ import annotations

import random
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from synergy_job.gang.base import JOIN_TIMEOUT_S, POLL_S, PeerLostError
from synergy_job.gang.door import HANDSHAKE_S
from synergy_job.gang.key import NO_PROOF, new_nonce, proof, proves, read_key
from synergy_job.wire import SEND_TIMEOUT_S, Connection, WireError

if TYPE_CHECKING:
    from synergy_job.departure import Departure
    from synergy_job.environment import Worker
    from synergy_job.gang.base import Watchdog
    from synergy_job.length import Length

CONNECT_TIMEOUT_S = 5.0
RETRY_S = 0.5


class GangMember:
    """The gang as a rank above 0 sees it. One thread listens to the leader."""

    def __init__(self, worker: Worker, departure: Departure, watchdog: Watchdog, length: Length) -> None:
        self._worker = worker
        self._length = length
        self._departure = departure
        self._watchdog = watchdog
        self._changed = threading.Condition()
        self._connection: Connection | None = None
        self._thread: threading.Thread | None = None
        self._granted = -1
        self._stop_at: int | None = None
        self._failure: str | None = None
        self._dismissed = False
        self._closed = False
        self._asked_to_leave = False
        self._end: str | None = None
        self._saves: dict[int, bool] = {}
        """By step: whether rank 0 lets all save it."""
        self._key = read_key(worker.gang_key_file)
        self._early: list[dict[str, Any]] = []
        """What rank 0 said with its welcome."""
        self.gpu_uuids: tuple[str, ...] = worker.gpu_uuids
        self.peers: tuple[str, ...] = ()

    def join(self, step: int) -> bool:
        """Find the leader and wait until the gang is complete; False when this process must leave before that.

        Raises `PeerLostError` when the leader refuses this process or is not there within 10 minutes.
        """
        deadline = time.monotonic() + JOIN_TIMEOUT_S
        worker = self._worker
        hello = {
            "job": worker.job,
            "namespace": worker.namespace,
            "run": worker.run,
            "world_size": worker.world_size,
            "rank": worker.rank,
            "step": step,
            "gpu_uuids": list(worker.gpu_uuids),
        }
        self._connection = self._connect(deadline, hello)
        if self._connection is None:
            return False
        self._thread = threading.Thread(target=self._listen, args=(self._connection,), name="synergy-gang", daemon=True)
        self._thread.start()
        with self._changed:
            while self._granted < 0:
                self._raise_failure()
                if self._departure.due():
                    return False
                if time.monotonic() > deadline:
                    raise PeerLostError(f"the gang was not complete within {JOIN_TIMEOUT_S:.0f} s")
                self._changed.wait(POLL_S)
        return True

    def proceed(self, step: int) -> bool:
        """Whether the step after `step` begins; see `Gang`."""
        with self._changed:
            while True:
                self._raise_failure()
                self._ask_to_leave(step)
                if self._stop_at is not None:
                    return step < self._stop_at
                if step < self._granted:
                    return True
                self._changed.wait(POLL_S)

    def finished(self, step: int) -> None:
        """`step` steps are done here."""
        with self._changed:
            self._send({"done": step})

    def all_save(self, step: int, allowed: bool) -> bool:
        """Wait until rank 0 has said whether all save `step`; see `Gang`."""
        with self._changed:
            while step not in self._saves:
                self._raise_failure()
                self._changed.wait(POLL_S)
            return self._saves.pop(step)

    def depart(self, step: int, saved: bool) -> str | None:
        """Say that this process has left after `step`, and wait until the leader lets it go. See `Gang`."""
        with self._changed:
            self._send({"left": step, "end": self._length.end(step), "saved": saved})
            while not self._dismissed:
                self._raise_failure()
                self._changed.wait(POLL_S)
            return self._end

    def close(self) -> None:
        """Close the connection and end the thread."""
        with self._changed:
            self._closed = True
        self._watchdog.close()
        if self._connection is not None:
            self._connection.close()
        if self._thread is not None:
            self._thread.join(SEND_TIMEOUT_S)

    def _connect(self, deadline: float, hello: dict[str, Any]) -> Connection | None:
        """A connection to rank 0 that is past the handshake; None when this process must leave before that."""
        address = (self._worker.master_addr, self._worker.peer_port)
        while not self._departure.due():
            try:
                return self._meet(socket.create_connection(address, CONNECT_TIMEOUT_S), hello)
            except (OSError, WireError) as error:  # not there yet, its name is not in the DNS yet, or too busy
                if time.monotonic() > deadline:
                    raise PeerLostError(
                        f"rank 0 ({address[0]}:{address[1]}) did not answer within {JOIN_TIMEOUT_S:.0f} s: {error}"
                    ) from error
                time.sleep(RETRY_S * (0.5 + random.random()))  # noqa: S311
        return None

    def _meet(self, sock: socket.socket, hello: dict[str, Any]) -> Connection:
        """Say hello, and where the run has a key prove to know it and have it proved.

        Raises `PeerLostError` when rank 0 refuses, `WireError` when the handshake does not come to its end.
        """
        connection = Connection(sock)
        try:
            if self._key is None:
                connection.send({"hello": hello})
            else:
                self._prove(connection, {**hello, "nonce": new_nonce()}, self._key)
        except BaseException:
            connection.close()
            raise
        sock.settimeout(None)
        return connection

    def _prove(self, connection: Connection, hello: dict[str, Any], key: bytes) -> None:
        until = time.monotonic() + HANDSHAKE_S
        connection.send({"hello": hello})
        (answer,) = _hear(connection, until)[:1]
        challenge = str(answer.get("challenge"))
        if not proves(answer.get("proof"), key, "leader", hello, challenge):
            raise PeerLostError(f"{self._worker.master_addr}:{self._worker.peer_port} is not rank 0: {NO_PROOF}")
        connection.send({"proof": proof(key, "member", hello, challenge)})
        welcome, *self._early = _hear(connection, until)
        if "welcome" not in welcome:
            raise WireError("rank 0 answers no proof")

    def _send(self, message: dict[str, Any]) -> None:
        try:
            if self._connection is not None:
                self._connection.send(message)
        except WireError as error:
            self._fail(f"rank 0 of {self._worker.job} was lost: {error}")

    def _ask_to_leave(self, step: int) -> None:
        wanted = self._departure.due() or self._length.end(step) is not None
        if wanted and not self._asked_to_leave:
            self._asked_to_leave = True
            self._send({"leave": True})

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise PeerLostError(self._failure)

    def _fail(self, reason: str) -> None:
        if self._failure is None and not self._closed and not self._dismissed:
            self._failure = reason
            self._watchdog.bark(reason)
            self._changed.notify_all()

    def _listen(self, connection: Connection) -> None:
        with self._changed:
            for message in self._early:
                self._handle(message)
            self._changed.notify_all()
        while True:
            try:
                messages = connection.receive()
            except WireError as error:
                with self._changed:
                    self._fail(f"rank 0 of {self._worker.job} was lost: {error}")
                return
            with self._changed:
                for message in messages:
                    self._handle(message)
                self._changed.notify_all()

    def _handle(self, message: dict[str, Any]) -> None:
        if "go" in message:
            self._granted = int(message["go"])
        elif "stop" in message:
            self._stop_at = int(message["stop"])
        elif "save" in message:
            self._saves[int(message["save"])] = bool(message["allowed"])
        elif "steps" in message:
            self._length.steps = int(message["steps"])
        elif "bye" in message:
            end = message.get("end")
            self._end, self._dismissed = None if end is None else str(end), True
        elif "refused" in message:
            self._fail(f"rank 0 refuses this process: {message['refused']}")
        elif "lost" in message:
            self._fail(str(message["lost"]))


def _hear(connection: Connection, until: float) -> list[dict[str, Any]]:
    """The next messages, at least one. Raises `PeerLostError` for a refusal, `WireError` when none comes in time."""
    while True:
        left = until - time.monotonic()
        if left <= 0:
            raise WireError("rank 0 does not answer")
        connection.sock.settimeout(left)
        messages = connection.receive()
        if messages and "refused" in messages[0]:
            raise PeerLostError(f"rank 0 refuses this process: {messages[0]['refused']}")
        if messages:
            return messages
