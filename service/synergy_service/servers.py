"""Several uvicorn servers on one event loop."""

import asyncio
import socket
import ssl
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

from synergy_service.crowd import MOST_CONNECTIONS, PER_ADDRESS
from synergy_service.protocol import HEAD_SECONDS, protocol

DRAIN_SECONDS = 5
"""How long requests that are being answered may take after `stop`."""
KEEP_ALIVE_SECONDS = 75
"""How long an idle connection is kept. Workers keep theirs from one report to the next, so this must be much longer
than the longest time between two reports."""
_BACKLOG = 512


@dataclass(frozen=True)
class Endpoint:
    """One port: the ASGI application that answers there, and what its clients may do. Port 0 takes any that is free."""

    app: Any
    port: int
    tls: ssl.SSLContext | None = None
    """None: plain HTTP."""
    client_names: Collection[str] | None = None
    """A client's certificate must have one of these names; None: clients need no certificate."""
    head_s: float = HEAD_SECONDS
    """How long a client may take for the head of a request."""
    most: int = MOST_CONNECTIONS
    """Maximum number of open connections at this port."""
    per_address: int = PER_ADDRESS
    """Maximum number of open connections of one address. Clients with a certificate have no such limit."""


class _Server(uvicorn.Server):
    """A server that leaves signals to the process."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Nothing: several servers share the process."""
        yield


class Servers:
    """Servers of one process. The constructor binds all ports, and raises OSError where one is taken."""

    def __init__(self, host: str, endpoints: Sequence[Endpoint], drain_s: int = DRAIN_SECONDS) -> None:
        self._sockets = [_listen(host, endpoint.port) for endpoint in endpoints]
        self._servers = [_server(endpoint, drain_s) for endpoint in endpoints]

    @property
    def ports(self) -> list[int]:
        """The bound ports, in the order of the endpoints."""
        return [int(listening.getsockname()[1]) for listening in self._sockets]

    async def run(self) -> None:
        """Serve until `stop`."""
        async with asyncio.TaskGroup() as group:
            for server, listening in zip(self._servers, self._sockets, strict=True):
                group.create_task(server.serve(sockets=[listening]))

    def stop(self) -> None:
        """Take no new connections. Requests that are being answered may finish within `drain_s`."""
        for server in self._servers:
            server.should_exit = True


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket. It names its protocol, because asyncio sets TCP_NODELAY only then. Without TCP_NODELAY each
    answer to kube-scheduler waits 40 ms for an acknowledgement."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening


def _server(endpoint: Endpoint, drain_s: int) -> _Server:
    tls = endpoint.tls
    # clients without a certificate do not pass the handshake, and kube-scheduler binds many pods at a time
    per_address = endpoint.per_address if endpoint.client_names is None else endpoint.most
    return _Server(
        uvicorn.Config(
            endpoint.app,
            http=protocol(endpoint.client_names, endpoint.head_s, most=endpoint.most, per_address=per_address),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=drain_s,
            ssl_context_factory=None if tls is None else lambda _config, _default: tls,
        )
    )
