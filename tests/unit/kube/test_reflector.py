"""The reflector against a server of our own, for answers that a young API server cannot be brought to give."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from support.waiting import eventually
from synergy_kube import Change, KubeClient, NotFound, Reflector
from synergy_kube import client as client_module
from synergy_kube.resources import NODES


class Server:
    """Answers lists with `items` and each watch with the next script of `watches` (lines of JSON), then hangs."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.watches: list[list[dict[str, Any]]] = []
        self.lists = 0
        self.deaf = False
        self.watched_from: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self.deaf:
            await asyncio.sleep(3600)
        if "watch" not in request.query:
            self.lists += 1
            return web.json_response({"metadata": {"resourceVersion": "10"}, "items": self.items})
        self.watched_from.append(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        if not self.watches:
            await asyncio.sleep(3600)
        for event in self.watches.pop(0):
            line = msgspec.json.encode(event) + b"\n"
            await response.write(line[:7])
            await response.write(line[7:])
        return response


def node(name: str, version: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": version}}


@pytest.fixture
async def served() -> AsyncIterator[tuple[Server, KubeClient]]:
    server = Server()
    app = web.Application()
    app.router.add_get("/api/v1/nodes", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]

    async def no_credentials() -> dict[str, Any]:
        return {}

    client = KubeClient(aiohttp.ClientSession(), f"http://{host}:{port}", SimpleNamespace(auth_settings=no_credentials))
    yield server, client
    await client.close()
    await runner.cleanup()


async def follow(client: KubeClient, server: Server, changes: list[Change]) -> Reflector:
    reflector = Reflector(client, NODES, on_change=changes.append)
    task = asyncio.create_task(reflector.run())

    async def exhausted() -> bool:
        return not server.watches and len(server.watched_from) > 2

    try:
        await eventually(exhausted, seconds=10, what="all watches to be asked for", every=0.02)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return reflector


async def test_a_version_too_old_lists_anew_and_tells_what_went_meanwhile(served: tuple[Server, KubeClient]) -> None:
    server, client = served
    server.items = [node("a", "1"), node("b", "2")]
    expired = {"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}}
    server.watches = [[{"type": "DELETED", "object": node("a", "11")}, expired]]
    changes: list[Change] = []
    server_items_after = [node("c", "12")]

    def then(change: Change) -> None:
        changes.append(change)
        if change.new is None and change.key[1] == "a":
            server.items = server_items_after

    restarts: list[tuple[str, str]] = []
    reflector = Reflector(client, NODES, on_change=then, on_restart=lambda *told: restarts.append(told))
    task = asyncio.create_task(reflector.run())

    async def settled() -> bool:
        return set(reflector.items) == {("", "c")}

    try:
        await eventually(settled, seconds=10, what="the second list", every=0.02)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert (server.lists, restarts) == (2, [("nodes", "expired")])
    assert [(change.key[1], change.new is not None) for change in changes] == [
        ("a", True),
        ("b", True),
        ("a", False),
        ("b", False),
        ("c", True),
    ]


async def test_requests_that_fail_are_told_by_code_and_a_server_that_is_away_as_unreachable(
    served: tuple[Server, KubeClient],
) -> None:
    _, client = served
    codes: list[str] = []
    client.on_error = codes.append
    assert (await client.list(NODES))["items"] == []
    with pytest.raises(NotFound):
        await client.get(NODES, "nobody")
    await client.close()
    away = KubeClient(aiohttp.ClientSession(), "http://127.0.0.1:1", SimpleNamespace(auth_settings=_nothing))
    away.on_error = codes.append
    with pytest.raises(aiohttp.ClientError):
        await away.list(NODES)
    await away.close()
    assert codes == ["404", "unreachable"]


async def _nothing() -> dict[str, Any]:
    return {}


async def test_a_watch_that_ends_goes_on_from_the_last_version_seen(served: tuple[Server, KubeClient]) -> None:
    server, client = served
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"name": "", "resourceVersion": "15"}}}
    server.watches = [
        [{"type": "ADDED", "object": node("a", "12")}, bookmark],
        [{"type": "MODIFIED", "object": node("a", "16")}],
    ]
    changes: list[Change] = []
    reflector = await follow(client, server, changes)
    assert server.lists == 1
    assert server.watched_from[:3] == ["10", "15", "16"]
    assert [change.old is None for change in changes] == [True, False]
    assert set(reflector.items) == {("", "a")}


async def test_a_watch_that_falls_silent_is_given_up_and_taken_up_again(
    served: tuple[Server, KubeClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that the network has forgotten brings nothing, not even its end."""
    monkeypatch.setattr("synergy_kube.client.SILENT_SECONDS", 0.2)
    server, client = served
    await follow(client, server, [])
    assert server.lists == 1
    assert set(server.watched_from) == {"10"}


def test_a_live_watch_is_never_silent_for_so_long() -> None:
    """The server ends each watch before that."""
    assert client_module.WATCH_SECONDS + 5 <= client_module.SILENT_SECONDS <= 15


async def test_a_question_that_is_not_heard_is_given_up_and_can_be_asked_again(
    served: tuple[Server, KubeClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a minute for each connection that the network has forgotten would be minutes without a write."""
    assert client_module._ANSWER_SECONDS <= 10
    monkeypatch.setattr("synergy_kube.client._ANSWER_SECONDS", 0.2)
    server, client = served
    server.deaf = True
    with pytest.raises(TimeoutError):
        await client.list(NODES)
    server.deaf = False
    assert (await client.list(NODES))["items"] == []
