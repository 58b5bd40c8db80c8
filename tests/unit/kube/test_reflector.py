"""The reflector against a server of our own, for answers that a young API server cannot be brought to give."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from support.waiting import eventually
from synergy_kube import ApiError, Change, KubeClient, NotFound, Reflector, paging, reads, transport
from synergy_kube.resources import NODES


class Server:
    """Answers lists with `items`, in pages of the size asked for, and each watch with the next script of `watches`
    (lines of JSON), then hangs. `expiring` lists end with 410 at their second page."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.watches: list[list[dict[str, Any]]] = []
        self.lists = 0
        self.pages: list[tuple[int, int]] = []
        self.expiring = 0
        self.deaf = False
        self.watched_from: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self.deaf:
            await asyncio.sleep(3600)
        if "watch" not in request.query:
            return self._page(int(request.query.get("limit", 0)), int(request.query.get("continue", 0)))
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

    def _page(self, most: int, first: int) -> web.Response:
        """The token for the next page is the number of its first object."""
        self.pages.append((most, first))
        self.lists += first == 0
        if first and self.expiring:
            self.expiring -= 1
            return web.json_response({"code": 410, "reason": "Expired", "message": "too old"}, status=410)
        last = first + (most or len(self.items))
        rest = {"continue": str(last)} if last < len(self.items) else {}
        return web.json_response({"metadata": {"resourceVersion": "10", **rest}, "items": self.items[first:last]})


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

    client = KubeClient.at(f"http://{host}:{port}")
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


async def test_what_was_read_once_is_followed_without_a_second_list(served: tuple[Server, KubeClient]) -> None:
    server, client = served
    server.items = [node("a", "1")]
    server.watches = [[{"type": "ADDED", "object": node("b", "11")}]]
    reflector = Reflector(client, NODES)
    await reflector.read_once()
    task = asyncio.create_task(reflector.run())

    async def settled() -> bool:
        return len(reflector.items) == 2

    try:
        await eventually(settled, seconds=10, what="the change", every=0.02)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert (server.lists, server.watched_from[0]) == (1, "10")


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
        ("c", True),
        ("b", False),
    ]


async def run_until_synced(reflector: Reflector) -> None:
    task = asyncio.create_task(reflector.run())
    try:
        await asyncio.wait_for(reflector.synced.wait(), 10)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_large_collection_is_read_in_pages_trimmed_one_after_the_other(
    served: tuple[Server, KubeClient],
) -> None:
    server, client = served
    server.items = [node(f"n{number}", "1") for number in range(1250)]
    trimmed_at: list[int] = []

    def trim(item: dict[str, Any]) -> dict[str, Any]:
        trimmed_at.append(len(server.pages))
        return item

    reflector = Reflector(client, NODES, trim=trim)
    await run_until_synced(reflector)
    assert server.pages == [(500, 0), (500, 500), (500, 1000)]
    assert len(reflector.items) == 1250
    assert trimmed_at == [1] * 500 + [2] * 500 + [3] * 250, "the next page is asked for after all of the one before"


@pytest.mark.parametrize(
    ("expiring", "sizes"),
    [(1, [500, 500, 2000]), (3, [500, 500, *[2000, 2000] * 2, *[2000] * 5])],
)
async def test_a_list_that_expires_begins_anew_with_larger_pages(
    served: tuple[Server, KubeClient], expiring: int, sizes: list[int]
) -> None:
    """What the first page of an expired list has shown, and the next list does not, is gone."""
    server, client = served
    count = 1500 if expiring == 1 else 9000
    server.items = [node(f"n{number}", "1") for number in range(count)]
    server.expiring = expiring
    gone: list[str] = []

    def see(change: Change) -> None:
        if change.new is None:
            gone.append(change.key[1])
        elif change.key[1] == "n0" and server.lists == 1:
            server.items[0] = node("another", "2")

    reflector = Reflector(client, NODES, on_change=see)
    await run_until_synced(reflector)
    assert [most for most, _ in server.pages] == sizes
    assert len(reflector.items) == count
    assert gone == ["n0"]


async def test_others_run_while_a_large_list_is_taken(served: tuple[Server, KubeClient]) -> None:
    server, client = served
    server.items = [node(f"n{number}", "1") for number in range(500)]
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counted: list[int] = []

    def slowly(item: dict[str, Any]) -> dict[str, Any]:
        until = time.perf_counter() + 0.001
        while time.perf_counter() < until:
            pass
        counted.append(turns)
        return item

    task = asyncio.create_task(other())
    try:
        await run_until_synced(Reflector(client, NODES, trim=slowly))
    finally:
        task.cancel()
    assert all(later > earlier for earlier, later in pairwise(counted)), "no two objects without a break between them"


async def test_an_object_that_another_has_replaced_meanwhile_is_told_as_gone_and_come(
    served: tuple[Server, KubeClient],
) -> None:
    server, client = served
    first, second = node("a", "1"), node("a", "12")
    first["metadata"]["uid"], second["metadata"]["uid"] = "one", "two"
    server.items = [first]
    server.watches = [[{"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}}]]
    changes: list[tuple[str | None, str | None]] = []
    restarts: list[tuple[str, str]] = []

    def uid(item: dict[str, Any] | None) -> str | None:
        return None if item is None else item["metadata"]["uid"]

    def see(change: Change) -> None:
        changes.append((uid(change.old), uid(change.new)))
        server.items = [second]

    reflector = Reflector(client, NODES, on_change=see, on_restart=lambda *what: restarts.append(what))
    task = asyncio.create_task(reflector.run())

    async def replaced() -> bool:
        return len(changes) == 3

    try:
        await eventually(replaced, seconds=10, what="the second list", every=0.02)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert changes == [(None, "one"), ("one", None), (None, "two")]
    assert restarts == [("nodes", "expired")]


async def test_a_list_without_an_end_is_given_up(
    served: tuple[Server, KubeClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "_PAGES_MOST", 3)
    server, client = served
    server.items = [node(f"n{number}", "1") for number in range(8)]
    with pytest.raises(ApiError, match="the list of nodes does not end"):
        async for _ in client.pages(NODES, most=2):
            pass


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
    away = KubeClient.at("http://127.0.0.1:1")
    away.on_error = codes.append
    with pytest.raises(aiohttp.ClientError):
        await away.list(NODES)
    await away.close()
    assert codes == ["404", "unreachable"]


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
    monkeypatch.setattr("synergy_kube.reads.SILENT_SECONDS", 0.2)
    server, client = served
    await follow(client, server, [])
    assert server.lists == 1
    assert set(server.watched_from) == {"10"}


def test_a_live_watch_is_never_silent_for_so_long() -> None:
    """The server ends each watch before that."""
    assert reads.WATCH_SECONDS + 5 <= reads.SILENT_SECONDS <= 15


async def test_a_question_that_is_not_heard_is_given_up_and_can_be_asked_again(
    served: tuple[Server, KubeClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a minute for each connection that the network has forgotten would be minutes without a write."""
    assert transport._ANSWER_SECONDS <= 10
    monkeypatch.setattr("synergy_kube.transport._ANSWER_SECONDS", 0.2)
    server, client = served
    server.deaf = True
    with pytest.raises(TimeoutError):
        await client.list(NODES)
    server.deaf = False
    assert (await client.list(NODES))["items"] == []


async def running_until(reflector: Reflector, what: str, done: Callable[[], bool]) -> None:
    """Run the reflector until that is so."""
    task = asyncio.create_task(reflector.run())

    async def so() -> bool:
        return done()

    try:
        await eventually(so, seconds=10, what=what, every=0.02)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_it_goes_on_where_another_left_off(served: tuple[Server, KubeClient]) -> None:
    server, client = served
    server.watches = [[{"type": "MODIFIED", "object": node("a", "21")}, {"type": "DELETED", "object": node("b", "22")}]]
    changes: list[Change] = []
    reflector = Reflector(client, NODES, on_change=changes.append)
    reflector.begin_with({("", "a"): node("a", "1"), ("", "b"): node("b", "2"), ("", "c"): node("c", "3")}, "20")
    assert reflector.synced.is_set()
    await running_until(reflector, "both changes", lambda: len(changes) == 2)
    assert server.lists == 0
    assert server.watched_from[0] == "20"
    assert changes == [
        Change(("", "a"), node("a", "1"), node("a", "21")),
        Change(("", "b"), node("b", "2"), None),
    ]
    assert reflector.version == "22"
    assert set(reflector.items) == {("", "a"), ("", "c")}


@pytest.mark.parametrize("version", ["", "9"])
async def test_where_that_was_is_forgotten_it_tells_what_differs(
    served: tuple[Server, KubeClient], version: str
) -> None:
    server, client = served
    server.items = [node("a", "1"), node("b", "8"), node("d", "9")]
    expired = {"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}}
    server.watches = [[expired]] if version else []
    changes: list[Change] = []
    versions: list[str] = []

    def told(change: Change) -> None:
        changes.append(change)
        versions.append(reflector.version)

    reflector = Reflector(client, NODES, on_change=told)
    reflector.begin_with({("", "a"): node("a", "1"), ("", "b"): node("b", "2"), ("", "c"): node("c", "3")}, version)
    await running_until(reflector, "the list", lambda: reflector.version == "10")
    assert server.lists == 1
    assert changes == [
        Change(("", "b"), node("b", "2"), node("b", "8")),
        Change(("", "d"), None, node("d", "9")),
        Change(("", "c"), node("c", "3"), None),
    ]
    assert versions == ["", "", ""]  # who is killed now has to list again


async def test_a_version_that_the_server_has_not_come_to_is_listed_anew(served: tuple[Server, KubeClient]) -> None:
    """As after its data was restored from a backup."""
    server, client = served
    server.items = [node("a", "5")]
    ahead = {"code": 504, "reason": "Timeout", "message": "Too large resource version: 99, current: 10"}
    server.watches = [[{"type": "ERROR", "object": ahead}]]
    reflector = Reflector(client, NODES)
    reflector.begin_with({("", "a"): node("a", "70")}, "99")
    await running_until(reflector, "the list", lambda: reflector.version == "10")
    assert reflector.get("", "a") == node("a", "5")
