"""Several uvicorn servers on one event loop."""

import asyncio
import socket
import ssl
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

from synergy_extender.web.crowd import MOST_CONNECTIONS, PER_ADDRESS
from synergy_extender.web.protocol import HEAD_SECONDS, protocol

_DRAIN_SECONDS = 5
KEEP_ALIVE_SECONDS = 75
"""How long a connection is kept that nothing comes over. Workers keep theirs from one report to the next: it must be
much longer than the longest time between two reports."""
_BACKLOG = 512


@dataclass(frozen=True)
class Endpoint:
    """One port: what answers there, its TLS if any, and the names in a client's certificate of which it must have one
    (None: anybody may call, over so many connections of one address). Port 0 takes any that is free."""

    app: Any
    port: int
    tls: ssl.SSLContext | None = None
    client_names: Collection[str] | None = None
    head_s: float = HEAD_SECONDS
    per_address: int = PER_ADDRESS


class _Server(uvicorn.Server):
    """A server that leaves signals to the process."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Nothing: several servers share the process."""
        yield


class Servers:
    """Binds at once, so that a port that is taken is an OSError here; serves in `run`."""

    def __init__(self, host: str, endpoints: Sequence[Endpoint]) -> None:
        self._sockets = [_listen(host, endpoint.port) for endpoint in endpoints]
        self._servers = [_server(endpoint) for endpoint in endpoints]

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
        """Take no new connections; requests that are being answered get a few seconds."""
        for server in self._servers:
            server.should_exit = True


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket. It names its protocol: only then do asyncio's connections get TCP_NODELAY, without which each
    answer to the kube-scheduler waits 40 ms for an acknowledgement."""
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


def _server(endpoint: Endpoint) -> _Server:
    tls = endpoint.tls
    # strangers do not come through the handshake that asks for a certificate, and kube-scheduler binds many at a time
    per_address = endpoint.per_address if endpoint.client_names is None else MOST_CONNECTIONS
    return _Server(
        uvicorn.Config(
            endpoint.app,
            http=protocol(endpoint.client_names, endpoint.head_s, per_address=per_address),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_DRAIN_SECONDS,
            ssl_context_factory=None if tls is None else lambda _config, _default: tls,
        )
    )
