"""A server of our own that lists and watches like an API server, for what a real one cannot be made to do when asked:
events that come late, errors."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web

from synergy_extender.cluster.cache import ClusterCache
from synergy_kube import KubeClient

_JOBS = "/apis/kube-synergy.dev/v1alpha1/trainingjobs"
_NODES = "/api/v1/nodes"
_PODS = "/api/v1/pods"
_NAMESPACES = "/api/v1/namespaces"


class WatchServer:
    """Lists `jobs`, `nodes`, `pods` and `namespaces`, and nothing of other kinds; sends the watches of jobs, nodes and
    namespaces what is put in `events`, `node_events` and `namespace_events`; answers a question about one object with
    what `now` has under its path; keeps these paths (`asked`), the patches and posts that come; and refuses every
    further read once `failing` is set."""

    def __init__(self, *jobs: dict[str, Any]) -> None:
        self.jobs = list(jobs)
        self.nodes: list[dict[str, Any]] = []
        self.pods: list[dict[str, Any]] = []
        self.namespaces: list[dict[str, Any]] = [namespace_object("team")]
        self.events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.node_events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.namespace_events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.now: dict[str, dict[str, Any]] = {}
        self.patches: list[dict[str, Any]] = []
        self.posts: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.failing = False
        self.refused = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The answer to any request."""
        if request.method == "PATCH":
            self.patches.append(await request.json())
            return web.json_response({"code": 409, "reason": "Conflict", "message": "changed"}, status=409)
        if request.method == "POST":
            self.posts.append(await request.json())
            return web.json_response(self.posts[-1], status=201)
        if "watch" in request.query:
            queues = {_JOBS: self.events, _NODES: self.node_events, _NAMESPACES: self.namespace_events}
            return await self._watch(request, queues.get(request.path) or asyncio.Queue())
        if self.failing:
            self.refused += 1
            return web.json_response({"code": 500, "reason": "InternalError", "message": "down"}, status=500)
        if "/namespaces/" in request.path:
            self.asked.append(request.path)
            found = self.now.get(request.path)
            return web.json_response(found or {"code": 404, "reason": "NotFound"}, status=200 if found else 404)
        return web.json_response({"metadata": {"resourceVersion": "10"}, "items": self._listed(request.path)})

    def _listed(self, path: str) -> list[dict[str, Any]]:
        collections = {_JOBS: self.jobs, _NODES: self.nodes, _PODS: self.pods, _NAMESPACES: self.namespaces}
        return collections.get(path, [])

    async def _watch(self, request: web.Request, events: asyncio.Queue[dict[str, Any]]) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(msgspec.json.encode(await events.get()) + b"\n")


def namespace_object(name: str, version: str = "1") -> dict[str, Any]:
    """A namespace."""
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": version}}


@asynccontextmanager
async def connected(server: WatchServer) -> AsyncIterator[KubeClient]:
    """A client of the server."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)  # a watch that nobody reads any more
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    async with KubeClient.at(f"http://{host}:{port}") as client:
        try:
            yield client
        finally:
            await runner.cleanup()


@asynccontextmanager
async def following(server: WatchServer) -> AsyncIterator[tuple[KubeClient, ClusterCache]]:
    """A client of the server, and a cache that has read it and follows it."""
    async with connected(server) as client:
        cache = ClusterCache(client, lambda: None)
        task = asyncio.create_task(cache.run())
        await asyncio.wait_for(cache.wait_synced(), 10)
        try:
            yield client, cache
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
