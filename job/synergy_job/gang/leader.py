"""Rank 0 of a gang: listens, grants steps, names the step at which all leave."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from synergy_job.environment import ConfigError
from synergy_job.gang.base import AHEAD, JOIN_TIMEOUT_S, POLL_S, PeerLostError
from synergy_job.gang.door import Door
from synergy_job.gang.handshake import Handshake
from synergy_job.gang.key import read_key
from synergy_job.wire import SEND_TIMEOUT_S, Connection, WireError, close_in_children

if TYPE_CHECKING:
    from synergy_job.departure import Departure
    from synergy_job.environment import Worker
    from synergy_job.gang.base import Watchdog
    from synergy_job.gang.handshake import Admitted
    from synergy_job.length import Length


class Leader:
    """The gang as rank 0 sees it. One thread reads from all members; all state is kept under one condition."""

    def __init__(
        self,
        worker: Worker,
        departure: Departure,
        watchdog: Watchdog,
        length: Length,
        step_seconds: Callable[[], float],
    ) -> None:
        """`step_seconds` gives the mean duration of a step so far: the gang must stop that much earlier, since it runs
        one to `AHEAD` more steps."""
        self._worker = worker
        self._departure = departure
        self._watchdog = watchdog
        self._length = length
        self._step_seconds = step_seconds
        self._changed = threading.Condition()
        self._members: dict[int, Connection] = {}
        self._door = Door()
        self._handshake = Handshake(worker, read_key(worker.gang_key_file))
        self._listener: socket.socket | None = None
        self._done: dict[int, int] = {}
        self._left: dict[int, tuple[str | None, bool]] = {}
        """Why training ends at the members that are done, and whether they could save it."""
        self._uuids: dict[int, tuple[str, ...]] = {0: worker.gpu_uuids}
        self._granted = 0
        self._stop_at: int | None = None
        self._failure: str | None = None
        self._complete = False
        self._closed = False
        self._selector = selectors.DefaultSelector()
        self._thread = threading.Thread(target=self._serve, name="synergy-gang", daemon=True)

    @property
    def gpu_uuids(self) -> tuple[str, ...]:
        """GPUs of the whole gang in rank order, each once."""
        with self._changed:
            return tuple(dict.fromkeys(uuid for rank in sorted(self._uuids) for uuid in self._uuids[rank]))

    @property
    def peers(self) -> tuple[str, ...]:
        """Addresses from which the other members came."""
        found = set()
        with self._changed:
            for connection in self._members.values():
                with suppress(OSError):  # it has just gone
                    found.add(str(connection.sock.getpeername()[0]))
        return tuple(sorted(found))

    def join(self, step: int) -> bool:
        """Listen until every member is there, each at `step`; False when this process must leave before that.

        Raises `PeerLostError` when a member starts at another step or does not come within 10 minutes.
        """
        self._done[0] = step
        family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
        try:
            listener = socket.create_server(
                ("", self._worker.peer_port), family=family, dualstack_ipv6=family == socket.AF_INET6
            )
        except OSError as error:
            raise ConfigError(f"rank 0 cannot listen on SYNERGY_PEER_PORT: {error}") from error
        listener.setblocking(False)
        close_in_children(listener)
        self._listener = listener
        self._selector.register(listener, selectors.EVENT_READ)
        self._thread.start()
        deadline = time.monotonic() + JOIN_TIMEOUT_S
        with self._changed:
            while len(self._members) < self._worker.world_size - 1:
                self._raise_failure()
                if self._departure.due():
                    return False
                if time.monotonic() > deadline:
                    missing = sorted(set(range(1, self._worker.world_size)) - set(self._members))
                    self._fail(f"ranks {missing} did not come within {JOIN_TIMEOUT_S:.0f} s")
                self._changed.wait(POLL_S)
            self._compare_steps()
            self._raise_failure()
            self._complete = True
            if self._length.steps is not None:
                self._broadcast({"steps": self._length.steps})
            self._advance()
        return True

    def proceed(self, step: int) -> bool:
        """Whether the step after `step` begins; see `Gang`."""
        with self._changed:
            while True:
                self._raise_failure()
                self._decide(step)
                if self._stop_at is not None:
                    return step < self._stop_at
                if step < self._granted:
                    return True
                self._changed.wait(POLL_S)

    def finished(self, step: int) -> None:
        """`step` steps are done here."""
        with self._changed:
            self._done[0] = step
            self._decide(step)
            self._advance()

    def all_save(self, step: int, allowed: bool) -> bool:
        """Tell the members whether they save too; see `Gang`."""
        with self._changed:
            self._raise_failure()
            self._broadcast({"save": step, "allowed": allowed})
        return allowed

    def depart(self, step: int, saved: bool) -> str | None:
        """Wait until every member has reached `step` and is done, then let all go. See `Gang`."""
        with self._changed:
            while len(self._left) < self._worker.world_size - 1:
                self._raise_failure()
                self._changed.wait(POLL_S)
            all_saved = saved and all(theirs for _, theirs in self._left.values())
            ends = [self._length.end(step), *(end for _, (end, _) in sorted(self._left.items()))]
            end = next((why for why in ends if why is not None), None) if all_saved else None
            self._broadcast({"bye": True, "end": end})
            return end

    def close(self) -> None:
        """Close every socket and end the thread."""
        with self._changed:
            self._closed = True
        self._watchdog.close()
        if self._thread.is_alive():
            self._thread.join(SEND_TIMEOUT_S)

    def _compare_steps(self) -> None:
        """Called when all are connected: all get the message."""
        step = self._done[0]
        for rank, other in sorted(self._done.items()):
            if other != step:
                self._fail(
                    f"rank {rank} begins after step {other} and rank 0 after step {step}: every rank's load() must "
                    "return the same step; keep checkpoints where all workers can read them, or send them on from "
                    "rank 0"
                )

    def _decide(self, step: int) -> None:
        wanted = self._departure.due(self._step_seconds()) or self._ends_early(step)
        if self._stop_at is None and wanted:
            self._stop_at = self._granted
            self._broadcast({"stop": self._stop_at})

    def _ends_early(self, step: int) -> bool:
        """At its last step every process ends by itself."""
        return not self._length.reached(step) and self._length.end(step) is not None

    def _advance(self) -> None:
        limit = min(self._done.values()) + AHEAD
        if self._complete and self._stop_at is None and limit > self._granted:
            self._granted = limit
            self._broadcast({"go": limit})

    def _broadcast(self, message: dict[str, Any]) -> None:
        for rank, connection in self._members.items():
            try:
                connection.send(message)
            except WireError as error:
                self._lost(rank, error)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise PeerLostError(self._failure)

    def _fail(self, reason: str) -> None:
        if self._failure is None and not self._closed:
            self._failure = reason
            self._broadcast({"lost": reason})
            self._watchdog.bark(reason)
            self._changed.notify_all()

    def _lost(self, rank: int, why: object) -> None:
        if self._complete and rank not in self._left:
            self._fail(f"rank {rank} of {self._worker.job} was lost after step {self._done[rank]}: {why}")

    def _serve(self) -> None:
        while not self._closed:
            for key, _ in self._selector.select(POLL_S):
                if key.data is None:
                    self._accept(key.fileobj)  # type: ignore[arg-type]
                elif key.data.sock.fileno() >= 0:  # else it had to make room for another one just now
                    self._read(key.data)
            self._tidy()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()

    def _tidy(self) -> None:
        """Send strangers away whose time is over; once the gang is complete, all of them, and no more come."""
        for connection in self._door.late():
            self._drop(connection, "the handshake took too long")
        if self._complete and self._listener is not None:
            self._selector.unregister(self._listener)
            self._listener.close()
            self._listener = None
            for connection in self._door.all():
                self._drop(connection, "the gang is complete")

    def _accept(self, listener: socket.socket) -> None:
        try:
            sock, address = listener.accept()
        except OSError:
            return  # it went away before it was accepted
        sock.settimeout(SEND_TIMEOUT_S)
        connection = Connection(sock)
        self._selector.register(sock, selectors.EVENT_READ, connection)
        for gone in self._door.come(connection, str(address[0])):
            self._drop(gone, "too many strangers")

    def _read(self, connection: Connection) -> None:
        try:
            messages = connection.receive()
            with self._changed:
                for message in messages:
                    self._handle(connection, message)
        except (WireError, AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            self._drop(connection, error)

    def _drop(self, connection: Connection, why: object) -> None:
        self._selector.unregister(connection.sock)
        connection.close()
        with self._changed:
            self._door.leave(connection)
            for rank, member in list(self._members.items()):
                if member is connection:
                    if not self._complete:
                        del self._members[rank], self._done[rank]
                    self._lost(rank, why)

    def _handle(self, connection: Connection, message: dict[str, Any]) -> None:
        stranger = self._door.get(connection)
        if stranger is not None:
            admitted = self._handshake.next_word(stranger, message, self._members)
            if admitted is not None:
                self._admit(stranger.connection, admitted)
            return
        rank = next(rank for rank, member in self._members.items() if member is connection)
        if "done" in message:
            self._done[rank] = int(message["done"])
            self._advance()
        elif "leave" in message:
            self._departure.request()
        elif "left" in message:
            end = message.get("end")
            self._left[rank] = None if end is None else str(end), bool(message.get("saved"))
        self._changed.notify_all()

    def _admit(self, connection: Connection, admitted: Admitted) -> None:
        self._door.leave(connection)
        self._members[admitted.rank] = connection
        self._done[admitted.rank] = admitted.step
        self._uuids[admitted.rank] = admitted.gpu_uuids
        self._changed.notify_all()
