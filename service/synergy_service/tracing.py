"""Spans of OpenTelemetry, if they are switched on. Otherwise nothing of OpenTelemetry is loaded."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from typing import Any, Final

from synergy_service.settings import ConfigError, EnvironmentReader

VARIABLE: Final = "SYNERGY_TRACING_ENDPOINT"
_PATH: Final = "/v1/traces"
_TIMEOUT_SECONDS: Final = 5
"""For one export: it also bounds how long a receiver that is away keeps a program from ending."""
_OFF: Final[AbstractContextManager[Any]] = nullcontext()
_tracer: Any = None


def read_endpoint(read: EnvironmentReader) -> str:
    """Where spans go by OTLP over HTTP: an address such as `http://collector.monitoring:4318`; empty: nowhere. Raises
    ConfigError for something else, and if the extra `tracing` is not installed."""
    url = read.text(VARIABLE, "").rstrip("/")
    if not url:
        return ""
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"{VARIABLE} is {url!r}: give an address such as http://collector.monitoring:4318")
    try:
        for module in ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter"):
            import_module(module)
    except ImportError as error:
        raise ConfigError(f"{VARIABLE} is set, and {error.name} is missing: install kube-synergy[tracing]") from None
    return url


def span(name: str, /, **attributes: str | int | float | bool) -> AbstractContextManager[Any]:
    """A span while the block runs, a part of the one around it. It is marked as an error if the block raises."""
    if _tracer is None:
        return _OFF
    found: AbstractContextManager[Any] = _tracer.start_as_current_span(name, attributes=attributes)
    return found


@contextmanager
def tracing(endpoint: str, program: str, instance: str) -> Iterator[None]:
    """Spans of this process go to the endpoint while the block runs. An empty endpoint switches nothing on.

    They are sent by a thread of their own, some at a time. Those that the receiver does not take are dropped. The
    variables of OpenTelemetry's SDK hold, such as OTEL_TRACES_SAMPLER.
    """
    global _tracer  # noqa: PLW0603 - one process has one
    if not endpoint:
        yield
        return
    provider = _provider(endpoint, program, instance)
    _tracer = provider.get_tracer("kube-synergy")
    try:
        yield
    finally:
        _tracer = None
        provider.shutdown()


def _provider(endpoint: str, program: str, instance: str) -> Any:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - heavy
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    about = Resource.create({"service.name": program, "service.instance.id": instance})
    provider = TracerProvider(resource=about)
    exporter = OTLPSpanExporter(endpoint=f"{endpoint}{_PATH}", timeout=_TIMEOUT_SECONDS)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider
