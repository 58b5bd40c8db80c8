"""What the operator finds out about the API server at its start."""

import asyncio
import logging
from pathlib import Path

import pytest
from aiohttp import web

from support.api_server.watch_server import WatchServer, connected
from synergy_kube.resources import JOBS, PODS
from synergy_operator.edge.controller import Controller
from synergy_operator.edge.environment import Environment


class Discovery(WatchServer):
    """An API server of nothing, whose discovery lists these resources of the core group."""

    def __init__(self, *resources: str) -> None:
        super().__init__()
        self.resources = resources

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/api/v1":
            return web.json_response({"resources": [{"name": name} for name in self.resources]})
        return await super().answer(request)


async def test_a_subresource_is_served_if_discovery_lists_it() -> None:
    async with connected(Discovery("pods", "pods/status", "pods/resize")) as client:
        assert await client.serves(PODS, "resize")
        assert not await client.serves(PODS, "proxy")
        assert not await client.serves(JOBS, "resize"), "of another group"


@pytest.mark.parametrize("resizes", [True, False])
async def test_an_api_server_without_the_resize_subresource_is_noticed_at_the_start(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, resizes: bool
) -> None:
    caplog.set_level(logging.WARNING)
    listed = ("pods", "pods/resize") if resizes else ("pods",)
    async with connected(Discovery(*listed)) as client:
        controller = Controller(client, Environment("image", "https://extender", tmp_path), lambda: 0.0)
        ready = asyncio.Event()
        running = asyncio.create_task(controller.run(ready))
        try:
            await asyncio.wait_for(ready.wait(), 30)
        finally:
            running.cancel()
            await asyncio.wait({running})
    assert ("cannot resize pods" in caplog.text) is not resizes
