"""The application: the API under `/api/v1`, the page and what it loads."""

import asyncio
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse, Response, StreamingResponse
from pydantic import TypeAdapter
from starlette.datastructures import MutableHeaders
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as ScopeOfRequest

from synergy_dashboard.api import answers, future_answers
from synergy_dashboard.api.job.page import job_page
from synergy_dashboard.api.live_pages import cluster_page, queue_page
from synergy_dashboard.api.parts import ApiParts
from synergy_dashboard.api.past.routes import WEEK_S, Seconds, add_past
from synergy_dashboard.api.people import Asker
from synergy_dashboard.api.problems import Refusal, answer_problems
from synergy_dashboard.api.stream import LiveStream
from synergy_dashboard.api.tenants_page import tenants_page
from synergy_dashboard.api.what_if import read_request
from synergy_dashboard.live.scope import Scope

_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_ECHARTS: Final = Path(str(files("synergy_view"))) / "assets" / "echarts.min.js"
_STATIC: Final = Path(str(files("synergy_dashboard"))) / "web" / "static"


def api_app(parts: ApiParts, *, static: Path = _STATIC) -> FastAPI:
    """The ASGI application. `static` is the folder of the page."""
    app = FastAPI(title="kube-synergy dashboard", version="v1", docs_url=None, redoc_url=None)
    answer_problems(app)
    router = APIRouter(prefix="/api/v1", responses=_REFUSALS)
    _add_pages(router, parts)
    _add_futures(router, parts)
    add_past(router, parts, _json)
    app.include_router(router)
    app.add_middleware(_WithHeaders)
    app.get("/vendor/echarts.min.js", include_in_schema=False)(_echarts)
    if static.is_dir():
        app.mount("/", StaticFiles(directory=static, html=True), name="page")
    return app


def _add_pages(router: APIRouter, parts: ApiParts) -> None:
    live, store = parts.live, parts.store

    async def me(request: Request) -> Response:
        parts.check_synced()
        user = await parts.people.identify(request)
        scope = await parts.people.scope(user)
        visible = sorted(name for name in live.rows.namespaces if scope.sees(name))
        return _json(answers.Me(user=user.name, everything=scope.everything, namespaces=visible, version=parts.version))

    async def cluster(request: Request) -> Response:
        asker = await _asker(parts, request)
        use, since_s = await parts.use()
        return _json(cluster_page(live, asker.scope, use, since_s))

    async def queue(request: Request) -> Response:
        asker = await _asker(parts, request)
        return _json(queue_page(live, asker.scope))

    async def job(request: Request, namespace: str, name: str) -> Response:
        parts.check_synced()
        asker = await parts.people.asker_of(request, namespace)
        return _json(await job_page(parts, asker.scope, namespace=namespace, name=name))

    async def tenants(request: Request, since_s: Seconds = None) -> Response:
        asker = await _asker(parts, request)
        now = live.clock()
        since = now - WEEK_S if since_s is None else min(since_s, now)
        usage = await asyncio.to_thread(store.usage, since, now, asker.scope.namespaces)
        return _json(tenants_page(live, asker.scope, usage, since))

    async def stream(request: Request) -> Response:
        asker = await _asker(parts, request)

        async def again(before: Scope) -> Scope | None:
            try:
                return (await parts.people.asker(request)).scope
            except Refusal as error:
                return before if error.status_code == 503 else None

        return LiveStream(live, asker.user.name, asker.scope, again, parts.clock)

    _get(router, "/me", me, answers.Me, "The user, and the namespaces that they may see")
    _get(
        router,
        "/cluster",
        cluster,
        answers.ClusterPage,
        "The GPUs, the jobs that hold them, and the use of the last day",
    )
    _get(router, "/queue", queue, answers.QueuePage, "The waiting jobs in order")
    _get(router, "/jobs/{namespace}/{name}", job, answers.JobPage, "One job in detail")
    _get(router, "/tenants", tenants, answers.TenantsPage, "The tenants now, and their use in the past")
    router.get("/stream", summary="Server-sent events, each with a Change", response_class=StreamingResponse)(stream)


def _add_futures(router: APIRouter, parts: ApiParts) -> None:
    async def what_if(request: Request) -> Response:
        asker = await _asker(parts, request)
        wanted = await read_request(request)
        return _json(await parts.futures.what_if(wanted, asker))

    async def helped(request: Request, namespace: str, name: str) -> Response:
        parts.check_synced()
        asker = await parts.people.asker_of(request, namespace)
        if parts.live.job(namespace, name) is None:
            raise Refusal(404, f"there is no TrainingJob {namespace}/{name}")
        return _json(await parts.futures.help(f"{namespace}/{name}", asker))

    _get(
        router,
        "/jobs/{namespace}/{name}/help",
        helped,
        future_answers.HelpAnswer,
        "What would make a waiting job start",
    )
    router.post("/what-if", summary="Two futures side by side", responses=_said(future_answers.WhatIfAnswer))(what_if)


async def _asker(parts: ApiParts, request: Request) -> Asker:
    parts.check_synced()
    return await parts.people.asker(request)


class _WithHeaders:
    """ASGI middleware that adds the headers to each answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: ScopeOfRequest, receive: Receive, send: Send) -> None:
        """Pass the request on."""

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                if scope["path"].startswith("/api/"):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        await self._app(scope, receive, with_headers)


async def _echarts() -> Response:
    if not _ECHARTS.is_file():
        raise Refusal(404, "this installation has no charts")
    return FileResponse(_ECHARTS, media_type="text/javascript", headers={"Cache-Control": "max-age=86400"})


def _json(value: Any) -> Response:
    """The value without FastAPI's own validation, which would take longer than making the answer."""
    kind = type(value)
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return Response(_ADAPTERS[kind].dump_json(value), media_type="application/json")


_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}
_REFUSALS: dict[int | str, dict[str, Any]] = {
    401: {"description": "No token, or one that the API server refuses."},
    403: {"description": "The user may not see this."},
    429: {"description": "The user asks for too much at once."},
    503: {"description": "This cannot be answered now."},
}


def _said(answer: type[Any]) -> dict[int | str, dict[str, Any]]:
    """The answer for the OpenAPI page."""
    return {200: {"model": answer}}


def _get(
    router: APIRouter, path: str, handler: Callable[..., Awaitable[Response]], answer: type[Any], summary: str
) -> None:
    router.get(path, summary=summary, responses=_said(answer))(handler)
