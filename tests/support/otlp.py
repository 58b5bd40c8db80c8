"""A receiver of OpenTelemetry's spans on loopback: OTLP over HTTP, as a collector has it."""

import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Status


@dataclass(frozen=True)
class ReceivedSpan:
    """One span. `parent` is the identity of the span around it, empty for the first of a trace. `error` is the text
    of what it raised, empty for none."""

    service: str
    name: str
    identity: bytes
    parent: bytes
    attributes: Mapping[str, Any]
    seconds: float
    error: str


@dataclass
class Receiver:
    """`spans` in the order in which they came."""

    address: str
    spans: list[ReceivedSpan] = field(default_factory=list)

    def named(self, name: str) -> list[ReceivedSpan]:
        """Those of this name."""
        return [span for span in list(self.spans) if span.name == name]

    def parent_of(self, span: ReceivedSpan) -> str:
        """The name of the span around it; empty if there is none, or if it has not come."""
        return next((one.name for one in list(self.spans) if one.identity == span.parent), "")

    def take(self, body: bytes) -> None:
        """A request's body."""
        request = ExportTraceServiceRequest()
        request.ParseFromString(body)
        for group in request.resource_spans:
            service = _values(group.resource.attributes)["service.name"]
            for scope in group.scope_spans:
                for span in scope.spans:
                    seconds = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9
                    error = span.status.message if span.status.code == Status.STATUS_CODE_ERROR else ""
                    attributes = _values(span.attributes)
                    self.spans.append(
                        ReceivedSpan(service, span.name, span.span_id, span.parent_span_id, attributes, seconds, error)
                    )


@contextmanager
def receiver() -> Iterator[Receiver]:
    """A receiver while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            if self.path == "/v1/traces":
                found.take(body)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(200 if self.path == "/v1/traces" else 404)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = Receiver(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


def _values(attributes: "Iterator[KeyValue] | Any") -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value") or "string_value") for one in attributes}
