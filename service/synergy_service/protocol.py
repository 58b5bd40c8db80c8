"""Rules for one connection: the names in its client certificate, and the time for a request's head."""

import asyncio
import logging
from collections.abc import Collection, MutableMapping
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from synergy_service.crowd import MOST_CONNECTIONS, PER_ADDRESS, Crowd
from synergy_service.limits import App, Receive, Send, refuse

_LOG = logging.getLogger(__name__)
HEAD_SECONDS = 10.0
"""Time from the TLS handshake to the end of the first request's head, and from the first byte of each later head to its
end."""


def protocol(
    client_names: Collection[str] | None,
    head_s: float = HEAD_SECONDS,
    *,
    most: int = MOST_CONNECTIONS,
    per_address: int = PER_ADDRESS,
) -> type[asyncio.Protocol]:
    """The class of a server's connections.

    With `client_names`, a client whose certificate has none of these names gets 403. The TLS context must demand a
    certificate. A connection without a complete head within `head_s` is closed. At most `most` connections are open,
    and `per_address` from one address (`crowd`).
    """

    class Connection(H11Protocol):
        def __init__(
            self,
            config: uvicorn.Config,
            server_state: ServerState,
            app_state: dict[str, Any],
            _loop: asyncio.AbstractEventLoop | None = None,
        ) -> None:
            super().__init__(config, server_state, app_state, _loop)
            self._patience: asyncio.TimerHandle | None = None
            self._address = ""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._address = str(self.client[0]) if self.client else ""
            crowd.come(self._address, self)
            self._wait_for_head()
            if client_names is not None:
                shown = certificate_names(transport.get_extra_info("peercert"))
                if shown.isdisjoint(client_names):
                    _LOG.warning("a client with the certificate of %s is refused", _listed(shown))
                    self.app = _unknown_client(shown, client_names)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state is not h11.IDLE:
                self._wait_no_longer()
            elif self._patience is None:
                self._wait_for_head()

        def connection_lost(self, exc: Exception | None) -> None:
            crowd.leave(self._address, self)
            self._wait_no_longer()
            super().connection_lost(exc)

        def _wait_for_head(self) -> None:
            self._patience = self.loop.call_later(head_s, self.transport.abort)

        def _wait_no_longer(self) -> None:
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None

    crowd: Crowd[Connection] = Crowd(lambda one: one.transport.abort(), most=most, per_address=per_address)
    return Connection


def certificate_names(certificate: MutableMapping[str, Any] | None) -> set[str]:
    """Common names and DNS names in a client's certificate, as `ssl` decodes it."""
    if not certificate:
        return set()
    subject = [pair for part in certificate.get("subject", ()) for pair in part]
    alternative = certificate.get("subjectAltName", ())
    return {value for kind, value in (*subject, *alternative) if kind in ("commonName", "DNS")}


def _unknown_client(shown: Collection[str], wanted: Collection[str]) -> App:
    text = f"the client certificate is of {_listed(shown)}; only {_listed(wanted)} may call here"

    async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        await refuse(send, 403, text)

    return app


def _listed(names: Collection[str]) -> str:
    return " or ".join(repr(name) for name in sorted(names)) or "nobody"
