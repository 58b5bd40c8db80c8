"""The dashboard's page with answers about a made-up cluster: `python -m support.dashboard.demo --port 8099 [--large]`.

For work on the page and its tests. The live stream sends a change every `--every` seconds.
"""

import argparse
import asyncio
import math
import random
import time
from collections.abc import AsyncIterator, Callable
from importlib import resources
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from fastapi.staticfiles import StaticFiles
from pydantic import TypeAdapter

import synergy_dashboard.web
from support.dashboard import answers as made
from support.dashboard import job_page as dashboard_job
from support.dashboard.world import World, make_world, step
from synergy_dashboard.api import answers, future_answers
from synergy_view import assets

STATIC = Path(str(resources.files(synergy_dashboard.web))) / "static"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


def _json(answer: Any) -> bytes:
    return _ADAPTERS.setdefault(type(answer), TypeAdapter(type(answer))).dump_json(answer)


def _sent(answer: Any) -> Response:
    return Response(_json(answer), media_type="application/json")


class Demo:
    """One made-up cluster and what its API answers.

    `token` empty: everyone may read. `broken` ends the stream, `forbidden` names requests that are answered with 403.
    So many `changes` are still to come.
    """

    def __init__(
        self, world: World, *, token: str = "", every_s: float = 2.0, changes: float = math.inf, hidden: int = 0
    ) -> None:
        self.world = world
        self.token = token
        self.every_s = every_s
        self.changes = changes
        self.hidden = hidden
        self.broken = False
        self.forbidden: set[str] = set()
        self.asked: list[future_answers.WhatIfRequest] = []
        self.draw = random.Random(7)
        self.kept: tuple[World, float, dict[str, bytes]] = (world, 0.0, {})

    def app(self) -> FastAPI:
        """The server."""
        app = FastAPI(openapi_url=None)

        @app.middleware("http")
        async def guard(request: Request, answer: Callable[[Request], Any]) -> Response:
            path = request.url.path.removeprefix("/api/v1/")
            if path != request.url.path:
                if self.token and request.headers.get("authorization") != f"Bearer {self.token}":
                    return JSONResponse({"error": "no token, or a wrong one"}, 401)
                if path.split("/")[0] in self.forbidden:
                    return JSONResponse({"error": "user 'ann' may not get TrainingJobs in this namespace"}, 403)
            response: Response = await answer(request)
            response.headers["Content-Security-Policy"] = POLICY
            response.headers["Cache-Control"] = "no-cache"
            return response

        self._routes(app)
        self._actions(app)
        vendor = Path(str(resources.files(assets))) / assets.ECHARTS

        @app.get("/vendor/echarts.min.js")
        async def library() -> FileResponse:
            return FileResponse(vendor, media_type="text/javascript")

        app.mount("/", StaticFiles(directory=STATIC, html=True))
        return app

    def _routes(self, app: FastAPI) -> None:
        def route(path: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
            return app.get(f"/api/v1/{path}", response_model=None)

        @route("me")
        async def me() -> Response:
            return _sent(answers.Me(user="ann@example.com", everything=True, namespaces=["vision"], version="0.2.0"))

        @route("cluster")
        async def cluster() -> Response:
            return self._kept("cluster", lambda: made.cluster(self.world, self.hidden))

        @route("queue")
        async def queue() -> Response:
            return self._kept("queue", lambda: made.queue(self.world, self.hidden))

        @route("rounds")
        async def rounds(until_s: float | None = None, rounds: int = 24) -> Response:
            return _sent(made.rounds(self.world, until_s, rounds))

        @route("jobs/{namespace}/{name}")
        async def job(namespace: str, name: str) -> Response:
            page = dashboard_job.job(self.world, namespace, name)
            if page is None:
                return JSONResponse({"error": f"there is no TrainingJob {namespace}/{name}"}, 404)
            return _sent(page)

        @route("jobs/{namespace}/{name}/help")
        async def helped(namespace: str, name: str) -> Response:
            return _sent(made.helped(namespace, name))

        @route("tenants")
        async def tenants(since_s: float = 0) -> Response:
            return _sent(made.tenants(self.world, since_s))

    def _actions(self, app: FastAPI) -> None:
        @app.post("/api/v1/what-if", response_model=None)
        async def what_if(asked: future_answers.WhatIfRequest) -> Response:
            self.asked.append(asked)
            if asked.policy == "wrong":
                return JSONResponse({"error": "policy: there is no policy 'wrong'"}, 422)
            return _sent(made.what_if(self.world, asked))

        @app.get("/api/v1/export", response_model=None)
        async def export() -> Response:
            return Response(b"PK\x05\x06" + bytes(18), media_type="application/zip")

        @app.get("/api/v1/stream", response_model=None)
        async def stream() -> Response:
            if self.broken:
                return JSONResponse({"error": "not ready"}, 503)
            return StreamingResponse(self._events(), media_type="text/event-stream")

    def _kept(self, name: str, make: Callable[[], Any]) -> Response:
        """An answer that is made once for each state of the cluster."""
        if self.kept[0] is not self.world or self.kept[1] != self.world.now:
            self.kept = self.world, self.world.now, {}
        answers_kept = self.kept[2]
        if name not in answers_kept:
            answers_kept[name] = _json(make())
        return Response(answers_kept[name], media_type="application/json")

    async def _events(self) -> AsyncIterator[bytes]:
        yield b": connected\n\n"
        while not self.broken:
            await asyncio.sleep(self.every_s)
            if self.changes <= 0:
                continue
            change = self.change()
            if change is not None:
                self.changes -= 1
                yield b"event: change\ndata: " + _json(change) + b"\n\n"

    def change(self) -> answers.Change | None:
        """The cluster a step later."""
        moved = step(self.world, self.draw, time.time())
        if moved is None:
            return None
        ended, first = moved
        nodes = {name: self.world.nodes[name] for name in self.world.shares[first]}
        return answers.Change(
            now=self.world.now,
            jobs={ended: None, first: self.world.jobs[first]},
            queue={first: None},
            nodes=dict(nodes),
            types=self.world.types(),
            tenants=self.world.tenants(),
            waiting_by_reason=self.world.reasons(),
            round_ends_s=made.policy(self.world).round_ends_s,
        )


def realistic() -> World:
    """40 nodes."""
    return make_world(40, 110, time.time())


def large() -> World:
    """1,250 nodes and 5,000 jobs."""
    return make_world(1250, 5000, time.time())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--token", default="")
    parser.add_argument("--every", type=float, default=2.0)
    given = parser.parse_args()
    demo = Demo(large() if given.large else realistic(), token=given.token, every_s=given.every)
    uvicorn.run(demo.app(), port=given.port, log_level="warning")
