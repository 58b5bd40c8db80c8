"""How a request gets to the API server: what is on the wire, and which settings of the configuration are followed."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web
from kubernetes.aio.client import Configuration

from synergy_kube import ApiError, KubeClient, connection
from synergy_kube.resources import CONFIG_MAPS, PODS


class Server:
    """Remembers each request and answers it with an object."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[web.Request] = []
        self.bodies: list[bytes] = []
        self.answer: web.Response | None = None
        self.delay_s = 0.0

    async def handle(self, request: web.Request) -> web.Response:
        self.asked.append(request)
        self.bodies.append(await request.read())
        await asyncio.sleep(self.delay_s)
        return self.answer or web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    app = web.Application(client_max_size=8 << 20)
    app.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    made.url = f"http://{host}:{port}"
    yield made
    await runner.cleanup()


async def test_a_query_arrives_as_it_was_meant(server: Server) -> None:
    async with KubeClient.at(server.url) as client:
        await client.list(PODS, "team", label_selector="a in (x, y),b=ü+1", field_selector="spec.nodeName=n")
        await client.page(PODS, after="eyJ2IjoibWV0YS9rOHMvdjEi+/==")
    assert server.asked[0].path == "/api/v1/namespaces/team/pods"
    assert dict(server.asked[0].query) == {
        "labelSelector": "a in (x, y),b=ü+1",
        "fieldSelector": "spec.nodeName=n",
    }
    assert server.asked[1].query["continue"] == "eyJ2IjoibWV0YS9rOHMvdjEi+/=="


async def test_a_body_arrives_whole_with_the_content_type_of_its_patch(server: Server) -> None:
    async with KubeClient.at(server.url) as client:
        await client.apply(CONFIG_MAPS, "a", {"data": {"x": "é\u2028"}}, "team", manager="m")
        await client.merge_patch(PODS, "a", {"spec": None}, "team")
        await client.strategic_patch(PODS, "a", {}, "team")
        await client.delete(PODS, "a", "team", uid="u")
    types = [request.headers["Content-Type"] for request in server.asked]
    assert types == [
        "application/apply-patch+yaml",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/json",
    ]
    bodies = [msgspec.json.decode(body) for body in server.bodies]
    assert bodies[0]["data"] == {"x": "é\u2028"}
    assert bodies[1:3] == [{"spec": None}, {}]
    assert bodies[3]["preconditions"] == {"uid": "u"}


async def test_a_large_body_arrives_whole(server: Server) -> None:
    text = "é" * connection._LARGE_BODY
    async with KubeClient.at(server.url) as client:
        await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"x": text}}, "team")
    assert msgspec.json.decode(server.bodies[0])["data"]["x"] == text
    assert server.asked[0].headers["Content-Type"] == "application/json"


async def test_each_request_has_the_token_as_it_is_then(server: Server) -> None:
    tokens = iter(("first", "second"))

    async def renewed(configuration: Any) -> None:
        configuration.api_key["BearerToken"] = next(tokens)

    configuration = Configuration(host=server.url, api_key={"BearerToken": "none"})
    configuration.api_key_prefix["BearerToken"] = "Bearer"
    configuration.refresh_api_key_hook = renewed
    async with KubeClient(configuration) as client:
        await client.list(PODS)
        await client.list(PODS)
    assert [request.headers["Authorization"] for request in server.asked] == ["Bearer first", "Bearer second"]


async def test_a_kubeconfig_s_proxy_is_used_and_the_environment_s_is_not(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with KubeClient.at(server.url) as client:
        await client.list(PODS)
    async with KubeClient(Configuration(host="http://cluster.example", proxy=server.url)) as client:
        await client.list(PODS)
        await client.create(CONFIG_MAPS, {"data": {"x": "x" * connection._LARGE_BODY}}, "team")
    assert [request.host for request in server.asked[1:]] == ["cluster.example"] * 2


async def test_a_refusal_has_the_server_s_words_and_the_time_it_asks_to_wait(server: Server) -> None:
    status = {"reason": "TooManyRequests", "message": "slow down"}
    server.answer = web.json_response(status, status=429, headers={"Retry-After": "7"})
    async with KubeClient.at(server.url) as client:
        with pytest.raises(ApiError, match="429 TooManyRequests: slow down") as refused:
            await client.create(PODS, {}, "team")
    assert refused.value.retry_after_s == 7.0


async def test_a_server_that_says_nothing_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("synergy_kube.transport._ANSWER_SECONDS", 0.2)
    server.delay_s = 2.0
    told: list[str] = []
    async with KubeClient.at(server.url) as client:
        client.on_error = told.append
        began = time.monotonic()
        with pytest.raises((aiohttp.ClientError, TimeoutError)):
            await client.create(PODS, {}, "team")
    assert time.monotonic() - began < 1.5
    assert told == ["unreachable"]
