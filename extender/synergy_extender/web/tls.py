"""TLS of the servers, and certificates that change while they run."""

import asyncio
import logging
import ssl
from dataclasses import dataclass
from pathlib import Path

_LOG = logging.getLogger(__name__)
_CHECK_SECONDS = 10.0


@dataclass(frozen=True)
class TlsFiles:
    """The folder with `tls.crt`, `tls.key` and `ca.crt`, as cert-manager and the chart's own Job write it."""

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
        """Who signs clients' certificates."""
        return self.folder / "ca.crt"

    def context(self, *, client_certificate: bool) -> ssl.SSLContext:
        """A server's context, TLS 1.2 at least; with `client_certificate` only clients whose certificate the authority
        signed get in. Raises OSError or ssl.SSLError if a file is missing or is none."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.load(context)
        if client_certificate:
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def load(self, context: ssl.SSLContext) -> None:
        """Use the files as they are now, for connections to come."""
        context.load_cert_chain(self.certificate, self.key)
        context.load_verify_locations(self.authority)

    def version(self) -> tuple[int, ...]:
        """Changes when a file does; zero for a file that is not there."""
        files = (self.certificate, self.key, self.authority)
        return tuple(file.stat().st_mtime_ns if file.exists() else 0 for file in files)


async def follow(files: TlsFiles, contexts: list[ssl.SSLContext], every_s: float = _CHECK_SECONDS) -> None:
    """Load the files again whenever they changed, until cancelled. Files that do not fit together are left alone."""
    version = files.version()
    while True:
        await asyncio.sleep(every_s)
        now = files.version()
        if now == version:
            continue
        try:
            for context in contexts:
                files.load(context)
        except (OSError, ssl.SSLError) as error:
            _LOG.warning("the new certificate in %s cannot be used yet: %s", files.folder, error)
        else:
            version = now
            _LOG.info("the certificate in %s was loaded anew", files.folder)
