"""What Prometheus reads of the operator."""

import asyncio
import socket

import aiohttp
import pytest

from synergy_operator.edge.caches.refusals import RefusalLog
from synergy_operator.edge.metrics import Metrics
from synergy_operator.edge.metrics_server import MetricsServer
from synergy_operator.edge.work_queue import TryAgain, WorkQueue


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"kube_synergy_operator_{name}", labels)


@pytest.mark.parametrize(("error", "outcome"), [(None, "done"), (TryAgain("old"), "again"), (ValueError(), "error")])
async def test_a_reconcile_is_counted_by_its_outcome_and_timed(error: Exception | None, outcome: str) -> None:
    metrics = Metrics()

    async def work(key: tuple[str, str]) -> float | None:
        await asyncio.sleep(0)
        if error is not None:
            raise error
        return 7.0

    timed = metrics.timed(work)
    if error is None:
        assert await timed(("team", "job")) == 7.0
    else:
        with pytest.raises(type(error)):
            await timed(("team", "job"))
    assert value(metrics, "reconciles_total", outcome=outcome) == 1.0
    assert value(metrics, "reconcile_seconds_count") == 1.0


async def test_the_queue_says_how_long_it_is_and_how_old_its_first_key_is() -> None:
    metrics, begun, let_go = Metrics(), asyncio.Event(), asyncio.Event()

    async def work(key: str) -> float | None:
        begun.set()
        await let_go.wait()
        return None

    queue = WorkQueue(work, workers=1)
    metrics.follow_queue(lambda: queue.length, lambda: queue.oldest_seconds)
    assert (value(metrics, "queue_length"), value(metrics, "queue_oldest_seconds")) == (0.0, 0.0)
    running = asyncio.create_task(queue.run())
    for key in ("a", "b", "c"):
        queue.add(key)
    await begun.wait()
    assert value(metrics, "queue_length") == 2.0
    first = value(metrics, "queue_oldest_seconds")
    assert first is not None
    assert first > 0.0
    let_go.set()
    await queue.idle.wait()
    assert (value(metrics, "queue_length"), value(metrics, "queue_oldest_seconds")) == (0.0, 0.0)
    running.cancel()


def test_refusals_runs_watches_and_errors_are_told_apart() -> None:
    metrics = Metrics()
    RefusalLog(metrics.refused).refuse_run(("team", "job"), 1, "exceeded quota", invalid=False)
    metrics.run_ended("Profile", "Profiled", 90.0)
    metrics.run_ended("Profile", "Profiled", 30.0)
    metrics.watch_restarted("pods", "expired")
    metrics.api_failed("409")
    assert value(metrics, "refusals_total", reason="PodRefused") == 1.0
    assert value(metrics, "runs_total", purpose="Profile", outcome="Profiled") == 2.0
    assert value(metrics, "run_gpu_seconds_total", purpose="Profile", outcome="Profiled") == 120.0
    assert value(metrics, "watch_restarts_total", resource="pods", cause="expired") == 1.0
    assert value(metrics, "api_errors_total", code="409") == 1.0


async def test_the_port_answers_in_prometheus_format_and_nothing_else() -> None:
    metrics = Metrics()
    metrics.api_failed("500")
    server = MetricsServer(metrics, 0, "127.0.0.1")
    await server.start()
    try:
        address = f"http://127.0.0.1:{server.port}"
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{address}/metrics") as answer:
                assert answer.status == 200
                assert answer.headers["Content-Type"].startswith("text/plain; version=")
                assert 'kube_synergy_operator_api_errors_total{code="500"} 1.0' in await answer.text()
            async with session.get(f"{address}/healthz") as answer:
                assert answer.status == 404
    finally:
        await server.stop()


async def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = MetricsServer(Metrics(), port, "127.0.0.1")
        with pytest.raises(OSError, match=f"SYNERGY_METRICS_PORT: cannot listen on port {port}"):
            await server.start()
        await server.stop()
