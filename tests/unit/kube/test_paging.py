"""Pages of collections with objects of any size: how many objects are asked for, and how many bytes are read."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from synergy_kube import KubeClient
from synergy_kube.answers import Page
from synergy_kube.errors import LongAnswer
from synergy_kube.paging import PAGE_BYTES, PAGE_ITEMS, in_pages
from synergy_kube.resources import NODES

_SMALL, _LARGE = 5_000, 1_500_000
"""Bytes of an object."""


class Collection:
    """Objects that count as so many bytes each, though they are only names here. `asked` are the limits of all
    requests."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes
        self.asked: list[int] = []

    async def ask(self, *, most: int, after: str, most_bytes: int) -> Page:
        """As a client asks. The token for the next page is the number of its first object."""
        first = int(after or 0)
        last = min(first + most, len(self.sizes))
        self.asked.append(most)
        size = sum(self.sizes[first:last])
        if most_bytes and size > most_bytes:
            raise LongAnswer
        rest = {"continue": str(last)} if last < len(self.sizes) else {}
        items = [{"metadata": {"name": f"n{number}"}} for number in range(first, last)]
        page = Page(msgspec.json.encode({"metadata": {"resourceVersion": "10", **rest}, "items": items}))
        page.size = max(page.size, size)
        return page

    async def read(self, most: int = PAGE_ITEMS) -> tuple[list[str], list[tuple[int, int]]]:
        """The names as they came, and of each page how many objects and bytes it has."""
        names, pages = [], []
        async for page in in_pages(self.ask, most, "nodes"):
            pages.append((len(page), page.size))
            names += [item["metadata"]["name"] for item in page]
        return names, pages


sizes_in_turn = st.lists(
    st.tuples(st.integers(1, 700), st.sampled_from([_SMALL, 30_000, 200_000, _LARGE, 20_000_000])), max_size=6
).map(lambda parts: [size for count, size in parts for _ in range(count)])
sizes_mixed = st.lists(st.sampled_from([_SMALL] * 15 + [_LARGE]), max_size=2000)


@given(st.one_of(sizes_in_turn, sizes_mixed), st.sampled_from([1, 7, PAGE_ITEMS, 8000]))
async def test_each_object_is_listed_once_and_no_page_of_several_is_too_large(sizes: list[int], most: int) -> None:
    collection = Collection(*sizes)
    names, pages = await collection.read(most)
    assert names == [f"n{number}" for number in range(len(sizes))]
    assert all(count <= 1 or size <= PAGE_BYTES for count, size in pages)
    assert all(1 <= asked <= most for asked in collection.asked)


@given(st.integers(0, 3000), st.sets(st.integers(0, 2999), max_size=300), st.sampled_from([PAGE_ITEMS, 8000]))
async def test_requests_are_few_wherever_large_objects_stand(count: int, large: set[int], most: int) -> None:
    """At most 24 for each 16 MB, and as many as for small objects."""
    collection = Collection(*(_LARGE if number in large else _SMALL for number in range(count)))
    await collection.read(most)
    assert len(collection.asked) <= 1 + count / most + 24 * sum(collection.sizes) / PAGE_BYTES


@pytest.mark.parametrize(("count", "requests"), [(0, 1), (1, 1), (500, 1), (501, 2), (1250, 3), (10_000, 20)])
async def test_small_objects_come_500_at_a_time(count: int, requests: int) -> None:
    collection = Collection(*[_SMALL] * count)
    await collection.read()
    assert collection.asked == [500] * requests


async def test_of_large_objects_fewer_are_asked_for_from_the_second_request_on() -> None:
    collection = Collection(*[_LARGE] * 300)
    _, pages = await collection.read()
    assert collection.asked[:2] == [500, 10]
    assert all(asked * _LARGE <= PAGE_BYTES for asked in collection.asked[1:])
    assert len(pages) < 70


async def test_after_large_objects_pages_grow_again() -> None:
    collection = Collection(*[_LARGE] * 20, *[_SMALL] * 3000)
    await collection.read()
    assert collection.asked.count(500) >= 5
    assert len(collection.asked) < 20


async def test_after_few_small_objects_an_api_server_does_not_put_hundreds_of_large_ones_together() -> None:
    """It would for an answer that is not read to its end."""
    collection, vain = Collection(*[*[_SMALL] * 10, *[_LARGE] * 30] * 10), list[int]()

    async def ask(*, most: int, after: str, most_bytes: int) -> Page:
        try:
            return await collection.ask(most=most, after=after, most_bytes=most_bytes)
        except LongAnswer:
            vain.append(sum(collection.sizes[int(after or 0) :][:most]))
            raise

    async for _ in in_pages(ask, PAGE_ITEMS, "nodes"):
        pass
    assert vain[0] > 400 << 20
    assert max(vain[1:]) <= 4 * PAGE_BYTES


async def test_an_object_that_is_larger_than_a_page_comes_alone() -> None:
    collection = Collection(_SMALL, PAGE_BYTES + 1, _SMALL)
    names, _ = await collection.read()
    assert names == ["n0", "n1", "n2"]


@given(sizes_in_turn)
async def test_a_server_that_needs_its_time_for_bytes_is_asked_for_fewer(sizes: list[int]) -> None:
    """It has no answer in time to a question about more than 64 MB."""
    collection = Collection(*sizes)

    async def ask(*, most: int, after: str, most_bytes: int) -> Page:
        first = int(after or 0)
        if most > 10 and sum(sizes[first : first + most]) > 64 << 20:
            raise TimeoutError
        return await collection.ask(most=most, after=after, most_bytes=most_bytes)

    names = [item["metadata"]["name"] async for page in in_pages(ask, PAGE_ITEMS, "nodes") for item in page]
    assert names == [f"n{number}" for number in range(len(sizes))]


async def test_of_a_slow_server_more_than_it_answers_in_time_is_asked_for_a_few_times_only() -> None:
    """Each such question costs 10 s, and the list expires after some minutes."""
    collection = Collection(*[_SMALL] * 3000)
    late: list[int] = []

    async def ask(*, most: int, after: str, most_bytes: int) -> Page:
        if most > 100:
            late.append(most)
            raise TimeoutError
        return await collection.ask(most=most, after=after, most_bytes=most_bytes)

    names = [item["metadata"]["name"] async for page in in_pages(ask, PAGE_ITEMS, "nodes") for item in page]
    assert len(names) == 3000
    assert late == [500, 160]
    assert collection.asked.count(80) > 30


@pytest.mark.parametrize(
    ("error", "asked"), [(TimeoutError, [500, 10]), (aiohttp.ConnectionTimeoutError, [500])], ids=["silent", "away"]
)
async def test_a_server_that_answers_nothing_in_time_is_no_matter_of_size(
    error: type[TimeoutError], asked: list[int]
) -> None:
    limits: list[int] = []

    async def ask(*, most: int, after: str, most_bytes: int) -> Page:
        limits.append(most)
        raise error

    with pytest.raises(error):
        async for _ in in_pages(ask, PAGE_ITEMS, "nodes"):
            pass
    assert limits == asked


class Server:
    """Lists nodes with a text of `size` bytes each, or with an annotation as long where metadata alone is asked
    for."""

    def __init__(self, count: int, size: int) -> None:
        text = "x" * size
        self.items = [
            {"metadata": {"name": f"n{number}", "resourceVersion": "1", "annotations": {"text": text}}}
            for number in range(count)
        ]
        self.asked: list[tuple[int, bool]] = []

    async def answer(self, request: web.Request) -> web.Response:
        """The token for the next page is the number of its first object."""
        most, first = int(request.query["limit"]), int(request.query.get("continue", 0))
        self.asked.append((most, "PartialObjectMetadataList" in request.headers["Accept"]))
        rest = {"continue": str(first + most)} if first + most < len(self.items) else {}
        body = {"metadata": {"resourceVersion": "10", **rest}, "items": self.items[first : first + most]}
        return web.Response(body=msgspec.json.encode(body), content_type="application/json")


@asynccontextmanager
async def served(server: Server) -> AsyncIterator[KubeClient]:
    app = web.Application()
    app.router.add_get("/api/v1/nodes", server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    async with KubeClient.at(f"http://{host}:{port}") as client:
        yield client
    await runner.cleanup()


async def test_the_client_reads_no_more_than_a_page_may_have_and_calls_that_no_error() -> None:
    server = Server(25, 1_400_000)
    codes: list[str] = []
    async with served(server) as client:
        client.on_error = codes.append
        names, sizes = [], []
        async for page in client.pages(NODES):
            names += [item["metadata"]["name"] for item in page]
            sizes.append(page.size)
        with pytest.raises(LongAnswer):
            await client.page(NODES, most=25, most_bytes=PAGE_BYTES)
        assert len(await client.page(NODES, most=25)) == 25
    assert names == [f"n{number}" for number in range(25)]
    assert max(sizes) <= PAGE_BYTES
    assert server.asked[:2] == [(500, False), (10, False)]
    assert codes == []


async def test_versions_are_read_in_pages_of_the_same_sizes() -> None:
    server = Server(25, 1_400_000)
    async with served(server) as client:
        found = await client.versions(NODES)
    assert found == {("", f"n{number}"): "1" for number in range(25)}
    assert server.asked[:2] == [(500, True), (10, True)]


async def test_a_page_is_empty_once_the_next_one_is_asked_for() -> None:
    """The caller's variable would keep it otherwise, and two would be in memory."""
    collection = Collection(*[_SMALL] * 501)
    held: list[Any] = []
    lengths: list[list[int]] = []
    async for page in in_pages(collection.ask, PAGE_ITEMS, "nodes"):
        held.append(page)
        lengths.append([len(one) for one in held])
    assert lengths == [[500], [0, 1]]
