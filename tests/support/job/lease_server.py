"""The lease endpoint of the contract over real TLS, without a cluster behind it."""

import datetime
import ipaddress
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

CONTINUE = {
    "verdict": "continue",
    "yield_in_s": None,
    "lease_remaining_s": 30.0,
    "next_report_s": 0.2,
    "cpu_millis": 1000,
    "memory_bytes": 1 << 30,
}
Answer = tuple[int, bytes]


def leave_in(seconds: float) -> Answer:
    """The answer that ends a lease."""
    body = {**CONTINUE, "verdict": "yield", "yield_in_s": seconds, "next_report_s": seconds}
    return 200, json.dumps(body).encode()


def go_on(next_report_s: float = 0.2) -> Answer:
    """The answer that renews a lease."""
    return 200, json.dumps({**CONTINUE, "next_report_s": next_report_s}).encode()


@dataclass
class LeaseServer:
    """What came in, and what is answered: `answer` gets each report's body."""

    url: str
    ca_cert: str
    answer: Callable[[dict[str, Any]], Answer] = lambda report: go_on()
    reports: list[dict[str, Any]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    moments: list[float] = field(default_factory=list)
    connections: int = 0
    idle_s: float = 75.0
    """How long a connection is kept that nothing comes over, as by the extender."""
    hang_up: bool = False
    """Close each connection after its answer without having said so."""


@dataclass(frozen=True)
class Authority:
    """A certificate of 127.0.0.1 and localhost that is its own authority, as files and as text."""

    certificate: Path
    key: Path

    @property
    def pem(self) -> str:
        return self.certificate.read_text()


def make_authority(folder: Path) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "extender")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    made = Authority(folder / "tls.crt", folder / "tls.key")
    made.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    made.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return made


@contextmanager
def serve_leases(authority: Authority, port: int = 0) -> Iterator[LeaseServer]:
    """A lease endpoint on a port of 127.0.0.1, a free one unless one is named."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            state.connections += 1
            super().setup()
            self.connection.settimeout(state.idle_s)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path != "/v1/lease" or self.headers["Content-Type"] != "application/json":
                self.send_error(404)
                return
            report = json.loads(body)
            state.reports.append(report)
            state.tokens.append(self.headers["Authorization"])
            state.moments.append(time.monotonic())
            status, answer = state.answer(report)
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
            self.close_connection = state.hang_up

        def log_message(self, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        allow_reuse_address = True

        def handle_error(self, *args: object) -> None:
            pass  # a client that was killed in the middle of a report

        def finish_request(self, request: Any, client_address: Any) -> None:
            with tls.wrap_socket(request, server_side=True) as secured:
                super().finish_request(secured, client_address)

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.certificate, authority.key)
    with Server(("127.0.0.1", port), Handler) as server:
        state = LeaseServer(f"https://127.0.0.1:{server.server_address[1]}", authority.pem)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield state
        server.shutdown()
        thread.join()
