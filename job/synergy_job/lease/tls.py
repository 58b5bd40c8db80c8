"""HTTPS that waits outside OpenSSL, so that a fork need not wait for the other side."""

from __future__ import annotations

import encodings.idna  # noqa: F401 - a name lookup imports it, and a fork must not meet an import of a thread
import select
import ssl
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPSConnection
from typing import Any, TypeVar

from synergy_job.forking import undivided

T = TypeVar("T")


class _Socket(ssl.SSLSocket):
    """A socket that does not block. Its methods do: each waits `patience_s` at most for the other side."""

    patience_s = 5.0

    def do_handshake(self, block: bool = False) -> None:
        self._patiently(super().do_handshake, block)

    def read(self, len: int = 1024, buffer: Any = None) -> Any:  # noqa: A002 - as the base class names it
        return self._patiently(super().read, len, buffer)

    def send(self, data: Any, flags: int = 0) -> int:
        return self._patiently(super().send, data, flags)

    def close(self) -> None:
        with undivided:
            super().close()

    def _patiently(self, step: Callable[..., T], *arguments: Any) -> T:
        """Raises TimeoutError when the other side takes too long."""
        deadline = time.monotonic() + self.patience_s
        while True:
            try:
                with undivided:
                    return step(*arguments)
            except ssl.SSLWantReadError:
                awaited = select.POLLIN
            except ssl.SSLWantWriteError:
                awaited = select.POLLOUT
            waiting = select.poll()
            waiting.register(self, awaited)
            if not waiting.poll(max(0.0, 1000 * (deadline - time.monotonic()))):
                raise TimeoutError(f"timed out after {self.patience_s:g} s")


def tls_to(ca_cert: str, patience_s: float) -> ssl.SSLContext:
    """For connections to servers with a certificate of this authority, which may take so long for each step.

    Raises ssl.SSLError or ValueError for a certificate that is none.
    """
    with undivided:
        context = ssl.create_default_context(cadata=ca_cert)
    context.sslsocket_class = type("_PatientSocket", (_Socket,), {"patience_s": patience_s})
    return context


class Connection(HTTPSConnection):
    """To one host. `context` is that of `tls_to`."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext, patience_s: float) -> None:
        super().__init__(host, port, timeout=patience_s, context=context)
        self._tls = context

    def connect(self) -> None:
        """Raises OSError: it cannot be reached, takes too long, or its certificate is not of this authority."""
        HTTPConnection.connect(self)
        self.sock.settimeout(0.0)
        with undivided:
            self.sock = self._tls.wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
        self.sock.do_handshake()
