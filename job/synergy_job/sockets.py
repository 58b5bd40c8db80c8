"""The kernel's counters of TCP connections in this network namespace (sock_diag(7), tcp_info)."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import struct
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    End = tuple[str, int]
    """Address and port."""

_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY
_REQUEST_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_DONE, _ERROR = 3, 2  # NLMSG_DONE, NLMSG_ERROR
_INFO = 2  # INET_DIAG_INFO
_ESTABLISHED = 1 << 1  # TCP_ESTABLISHED, as a state mask
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_MESSAGE_BYTES = 72  # struct inet_diag_msg
_ACKED_AT, _BUSY_AT = 120, 168  # tcpi_bytes_acked, tcpi_busy_time in struct tcp_info
_ROOM = 1 << 16
_PATIENCE_S = 2.0
_SOCKET = re.compile(r"socket:\[(\d+)\]")


class SocketsError(Exception):
    """The kernel does not tell; the message says why."""


@dataclass(frozen=True)
class Connection:
    """One end of a connection since it was made: the bytes that its peer has acknowledged, and the seconds in which
    data was on the way."""

    local: End
    remote: End
    inode: int
    sent_bytes: int
    busy_s: float


def connections() -> dict[int, Connection]:
    """The established connections of this network namespace. Raises SocketsError."""
    found: dict[int, Connection] = {}
    try:
        for family in (socket.AF_INET, socket.AF_INET6):
            found.update(_of_family(family))
    except OSError as error:
        raise SocketsError(f"the kernel tells nothing of its sockets: {error}") from error
    return found


def among(found: Mapping[int, Connection], processes: Iterable[int]) -> dict[int, Connection]:
    """Those whose both ends belong to one of these processes."""
    inodes = socket_inodes(processes)
    own = {cookie: one for cookie, one in found.items() if one.inode in inodes}
    ends = {(one.local, one.remote) for one in own.values()}
    return {cookie: one for cookie, one in own.items() if (one.remote, one.local) in ends}


def socket_inodes(processes: Iterable[int]) -> set[int]:
    """Of all sockets that the processes hold; none of a process that has ended."""
    found = set()
    for pid in processes:
        with suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                with suppress(OSError):
                    match = _SOCKET.match(os.readlink(f"/proc/{pid}/fd/{name}"))
                    if match is not None:
                        found.add(int(match[1]))
    return found


def sent_between(before: Mapping[int, Connection], after: Mapping[int, Connection]) -> list[Connection]:
    """What each connection of `after` has sent since `before`; one that was not there yet, since it was made."""
    changes = []
    for cookie, one in after.items():
        old = before.get(cookie)
        sent, busy = (0, 0.0) if old is None else (old.sent_bytes, old.busy_s)
        changes.append(replace(one, sent_bytes=one.sent_bytes - sent, busy_s=one.busy_s - busy))
    return changes


def _of_family(family: int) -> Iterator[tuple[int, Connection]]:
    request = struct.pack("=BBBBI48x", family, socket.IPPROTO_TCP, 1 << (_INFO - 1), 0, _ESTABLISHED)
    with closing(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG)) as channel:
        channel.settimeout(_PATIENCE_S)
        channel.send(_HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _REQUEST_DUMP, 1, 0) + request)
        while True:
            answer = channel.recv(_ROOM)
            for kind, body in _messages(answer):
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    raise OSError(-struct.unpack_from("=i", body)[0], "sock_diag is refused")
                one = parse_message(body)
                if one is not None:
                    yield one


def _messages(answer: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _HEADER.size <= len(answer):
        length, kind, *_ = _HEADER.unpack_from(answer, at)
        if length < _HEADER.size:
            return
        yield kind, answer[at + _HEADER.size : at + length]
        at += (length + 3) & ~3


def parse_message(body: bytes) -> tuple[int, Connection] | None:
    """Cookie and counters of a `struct inet_diag_msg`; None where the kernel is too old to count."""
    if len(body) < _MESSAGE_BYTES:
        return None
    width = 4 if body[0] == socket.AF_INET else 16
    ports = struct.unpack_from("!HH", body, 4)
    local, remote = ((_address(body[at : at + width]), port) for at, port in zip((8, 24), ports))  # noqa: B905
    (cookie,), (inode,) = struct.unpack_from("=Q", body, 44), struct.unpack_from("=I", body, 68)
    at = _MESSAGE_BYTES
    while at + _ATTRIBUTE.size <= len(body):
        length, kind = _ATTRIBUTE.unpack_from(body, at)
        if length < _ATTRIBUTE.size:
            return None
        info = body[at + _ATTRIBUTE.size : at + length]
        if kind == _INFO and len(info) >= _BUSY_AT + 8:
            acked, busy = (struct.unpack_from("=Q", info, place)[0] for place in (_ACKED_AT, _BUSY_AT))
            return cookie, Connection(local, remote, inode, acked, busy / 1e6)
        at += (length + 3) & ~3
    return None


def _address(data: bytes) -> str:
    """As text; an IPv4 address in IPv6's form as what it is."""
    if len(data) == 16:
        wide = ipaddress.IPv6Address(data)
        return str(wide.ipv4_mapped or wide)
    return str(ipaddress.IPv4Address(data))
