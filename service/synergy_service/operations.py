"""Metrics and probes, on a port of their own, without TLS."""

import asyncio
from collections.abc import Callable

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route


def ops_app(registry: CollectorRegistry, ready: Callable[[], str]) -> Starlette:
    """The ASGI application. `ready` returns what the program still waits for, or an empty text."""

    async def show_metrics(request: Request) -> Response:
        # in a thread: it takes some milliseconds, in which the event loop answers other requests
        text = await asyncio.to_thread(generate_latest, registry)
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    async def healthz(request: Request) -> Response:
        return PlainTextResponse("ok")

    async def readyz(request: Request) -> Response:
        missing = ready()
        return PlainTextResponse(missing or "ok", status_code=503 if missing else 200)

    return Starlette(routes=[Route("/metrics", show_metrics), Route("/healthz", healthz), Route("/readyz", readyz)])
