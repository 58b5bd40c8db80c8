"""Metrics and probes, on a port of their own."""

import asyncio
from collections.abc import Callable

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from synergy_dashboard.live.cluster import LiveCluster
from synergy_dashboard.recorder.follow import Recorder


def registry_of(live: LiveCluster, recorder: Recorder) -> CollectorRegistry:
    """The dashboard's own figures."""
    registry = CollectorRegistry()
    jobs = Gauge("kube_synergy_dashboard_jobs", "TrainingJobs that the dashboard has read.", registry=registry)
    jobs.set_function(lambda: len(live.rows.jobs))
    nodes = Gauge("kube_synergy_dashboard_nodes", "Nodes with GPUs that the dashboard has read.", registry=registry)
    nodes.set_function(lambda: len(live.rows.capacities))
    streams = Gauge("kube_synergy_dashboard_streams", "Pages that follow the stream of changes.", registry=registry)
    streams.set_function(lambda: live.subscribers)
    recorded = Gauge(
        "kube_synergy_dashboard_recorded_timestamp_seconds",
        "When the history was last up to date, in Unix time; 0 before the first time.",
        registry=registry,
    )
    recorded.set_function(lambda: recorder.written_s or 0.0)
    failures = Gauge(
        "kube_synergy_dashboard_recorder_failures",
        "How often recording has ended with an error of the database since the start.",
        registry=registry,
    )
    failures.set_function(lambda: recorder.failures)
    return registry


def ops_app(registry: CollectorRegistry, ready: Callable[[], str]) -> Starlette:
    """`ready` answers with what is missing, or with an empty text."""

    async def show_metrics(request: Request) -> Response:
        text = await asyncio.to_thread(generate_latest, registry)
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    async def healthz(request: Request) -> Response:
        return PlainTextResponse("ok")

    async def readyz(request: Request) -> Response:
        missing = ready()
        return PlainTextResponse(missing or "ok", status_code=503 if missing else 200)

    return Starlette(routes=[Route("/metrics", show_metrics), Route("/healthz", healthz), Route("/readyz", readyz)])
