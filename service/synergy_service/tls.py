"""TLS of the servers, and certificates that change while they run."""

import asyncio
import logging
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_LOG = logging.getLogger(__name__)
_CHECK_SECONDS = 10.0


@dataclass(frozen=True)
class TlsFiles:
    """The folder with `tls.crt`, `tls.key` and, where clients show certificates, `ca.crt`, as cert-manager and the
    chart's own Job write it."""

    folder: Path

    @property
    def certificate(self) -> Path:
        """The server's certificate."""
        return self.folder / "tls.crt"

    @property
    def key(self) -> Path:
        """Its key."""
        return self.folder / "tls.key"

    @property
    def authority(self) -> Path:
        """The authority that signs clients' certificates."""
        return self.folder / "ca.crt"

    def context(self, *, client_certificate: bool) -> ssl.SSLContext:
        """A server's context. With `client_certificate` a client needs a certificate that the authority signed.

        Raises OSError or ssl.SSLError if a file is missing, cannot be read, or does not fit the others.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.certificate, self.key)
        if client_certificate:
            context.load_verify_locations(self.authority)
            context.verify_mode = ssl.CERT_REQUIRED
            # a resumed session would not show its certificate again, though the authority may have changed
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.num_tickets = 0
        return context

    def version(self) -> tuple[int, ...]:
        """Changes when a file does; zero for a file that is not there."""
        files = (self.certificate, self.key, self.authority)
        return tuple(file.stat().st_mtime_ns if file.exists() else 0 for file in files)


class ServerTls:
    """The TLS of one port. The port listens with `context`. Each new connection gets the files that were loaded last,
    and trusts no authority that they no longer name."""

    def __init__(self, files: TlsFiles, *, client_certificate: bool) -> None:
        """Raises like `TlsFiles.context`."""
        self._files = files
        self._client_certificate = client_certificate
        self.context = self._newest = files.context(client_certificate=client_certificate)
        self.context.sni_callback = self._choose

    def reload(self) -> None:
        """Use the files as they are now, for connections to come. Raises like `TlsFiles.context`."""
        self._newest = self._files.context(client_certificate=self._client_certificate)

    def _choose(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        """Called by OpenSSL in every handshake, also when the client names no server."""
        connection.context = self._newest


async def follow(files: TlsFiles, served: Sequence[ServerTls], every_s: float = _CHECK_SECONDS) -> None:
    """Load the files again whenever they changed, until cancelled. Files that do not fit together are not used yet."""
    version = files.version()
    while True:
        await asyncio.sleep(every_s)
        now = files.version()
        if now == version:
            continue
        try:
            for tls in served:
                tls.reload()
        except (OSError, ssl.SSLError) as error:
            _LOG.warning("the new certificate in %s cannot be used yet: %s", files.folder, error)
        else:
            version = now
            _LOG.info("the certificate in %s was loaded anew", files.folder)
