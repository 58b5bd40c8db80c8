"""What the processes of a gang say to each other: one JSON object a line over TCP.

Member to leader:  {"hello": {...}}  {"proof": hmac}  {"done": steps}  {"leave": true}
                   {"left": step, "end": why training ends or null, "saved": whether the step is saved here}
Leader to member:  {"challenge": nonce, "proof": hmac}  {"welcome": true}  {"refused": why}
                   {"steps": all of the job}  {"go": steps}  {"stop": step}  {"lost": why}
                   {"bye": true, "end": why training ends or null}
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import weakref
from typing import Any

import synergy_job.forking  # noqa: F401 - in a child its lock is free before sockets are closed

LONGEST_LINE = 16384
SEND_TIMEOUT_S = 10.0


class WireError(Exception):
    """The other side is gone or says what makes no sense."""


class Connection:
    """One end of a conversation. `receive` is for one thread; call `send` under the caller's lock."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._buffer = b""
        self.most_bytes: int | None = None
        """How many bytes more may come; None for any number."""
        tune(sock)
        close_in_children(sock)

    def send(self, message: dict[str, Any]) -> None:
        """Send one message. Raises `WireError` when it cannot be sent within the socket's timeout."""
        try:
            self.sock.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise WireError(f"cannot send: {error}") from error

    def receive(self) -> list[dict[str, Any]]:
        """The messages that have come, after waiting for bytes where there are none.

        Raises `WireError` when the other side has closed or sends no messages.
        """
        try:
            data = self.sock.recv(LONGEST_LINE)
        except OSError as error:
            raise WireError(f"connection lost: {error}") from error
        if not data:
            raise WireError("connection closed")
        if self.most_bytes is not None:
            self.most_bytes -= len(data)
            if self.most_bytes < 0:
                raise WireError("too much was said before the handshake was over")
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        if len(self._buffer) > LONGEST_LINE:
            raise WireError("a line without an end")
        return [_message(line) for line in lines]

    def close(self) -> None:
        """End the conversation, also for a thread that waits in `receive`."""
        with contextlib.suppress(OSError):  # the other side was first
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


def _message(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise WireError(f"not a message: {line[:80]!r}") from None
    if not isinstance(message, dict):
        raise WireError(f"not a message: {line[:80]!r}")
    return message


def tune(sock: socket.socket) -> None:
    """Small messages at once; a machine that vanished is noticed within some 30 s."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", 10),
        ("TCP_KEEPINTVL", 5),
        ("TCP_KEEPCNT", 4),
        ("TCP_USER_TIMEOUT", 30000),
    ):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


_open_sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def close_in_children(sock: socket.socket) -> None:
    """Let no forked process (a loader's workers) hold the socket: it would hide the death of its parent."""
    _open_sockets.add(sock)


def _close_inherited() -> None:
    for sock in list(_open_sockets):
        sock.close()


os.register_at_fork(after_in_child=_close_inherited)
