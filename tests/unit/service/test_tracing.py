"""Spans: what a receiver gets of them, and that they cost nothing while they are switched off."""

import socket
import subprocess
import sys
import time

import pytest

from support.otlp import receiver
from synergy_service.settings import ConfigError, EnvironmentReader
from synergy_service.tracing import VARIABLE, read_endpoint, span, tracing

_OFF = """
import sys, synergy_extender.app, synergy_operator.edge.handlers
from synergy_service.tracing import span, tracing
with tracing("", "program", "one"), span("pass") as found:
    assert found is None
loaded = [name for name in sys.modules if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))]
assert not loaded, loaded
"""


def test_off_nothing_is_loaded_and_nothing_made() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", _OFF], check=True)


def test_a_receiver_gets_spans_with_their_parts() -> None:
    with receiver() as found:
        with tracing(found.address, "some-program", "pod-1"), span("pass"):
            with span("plan", mode="round", jobs=3):
                time.sleep(0.01)
            with pytest.raises(RuntimeError, match="refused"), span("write"):
                raise RuntimeError("refused")
        assert {one.name for one in found.spans} == {"pass", "plan", "write"}
        (plan,), (write,), (whole,) = (found.named(name) for name in ("plan", "write", "pass"))
        assert plan.attributes == {"mode": "round", "jobs": 3}
        assert plan.seconds >= 0.01
        assert [found.parent_of(one) for one in (plan, write, whole)] == ["pass", "pass", ""]
        assert [one.error for one in (plan, write, whole)] == ["", "RuntimeError: refused", ""]
        assert {one.service for one in found.spans} == {"some-program"}


def test_after_the_block_nothing_is_sent() -> None:
    with receiver() as found:
        with tracing(found.address, "program", "one"):
            pass
        with span("late") as nothing:
            assert nothing is None
        assert found.spans == []


def test_a_sampler_of_the_environment_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0")
    with receiver() as found:
        with tracing(found.address, "program", "one"), span("pass"):
            pass
        assert found.spans == []


def test_a_receiver_that_is_away_keeps_nobody() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        began = time.monotonic()
        with tracing(address, "program", "one"), span("pass"):
            pass
        assert time.monotonic() - began < 30


def endpoint(value: str) -> str:
    return read_endpoint(EnvironmentReader({VARIABLE: value}))


def test_an_endpoint_is_an_address_or_empty() -> None:
    assert endpoint("") == ""
    assert endpoint("http://collector.monitoring:4318/") == "http://collector.monitoring:4318"
    with pytest.raises(ConfigError, match="SYNERGY_TRACING_ENDPOINT is 'collector:4317': give an address"):
        endpoint("collector:4317")


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigError, match=r"opentelemetry\.sdk\.trace is missing: install kube-synergy\[tracing\]"):
        endpoint("http://collector:4318")
