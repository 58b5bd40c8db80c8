"""Several uvicorn servers on one event loop, and the certificate of one of them."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import uvicorn

_LOG = logging.getLogger(__name__)
_DRAIN_SECONDS: Final = 2
_KEEP_ALIVE_SECONDS: Final = 75
_MOST_CONNECTIONS: Final = 1_000
_BACKLOG: Final = 128
_CHECK_SECONDS: Final = 10.0


class ServerTls:
    """The TLS of a port, from `tls.crt` and `tls.key` in a folder. Raises OSError or ssl.SSLError where they are no
    certificate and its key."""

    def __init__(self, folder: Path) -> None:
        self._files = folder / "tls.crt", folder / "tls.key"
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._version = self._written()
        self.context.load_cert_chain(*self._files)

    def reload(self) -> None:
        """Show new connections the files as they are now, if they changed and fit together."""
        version = self._written()
        if version == self._version:
            return
        try:
            # not into the context at once: half of a pair would stay in it
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*self._files)
            self.context.load_cert_chain(*self._files)
        except (OSError, ssl.SSLError) as error:
            _LOG.warning("the new certificate in %s cannot be used yet: %s", self._files[0].parent, error)
            return
        self._version = version

    async def follow(self) -> None:
        """Load the files again whenever they changed, until cancelled."""
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            self.reload()

    def _written(self) -> tuple[int, ...]:
        return tuple(file.stat().st_mtime_ns if file.exists() else 0 for file in self._files)


@dataclass(frozen=True)
class Endpoint:
    """One port: what answers there, and its TLS if any. Port 0 takes any that is free."""

    app: Any
    port: int
    tls: ServerTls | None = None


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
    return _Server(
        uvicorn.Config(
            endpoint.app,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_DRAIN_SECONDS,
            ssl_context_factory=None if tls is None else lambda _config, _default: tls.context,
        )
    )
