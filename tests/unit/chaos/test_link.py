"""The link's ways to fail, seen from both of its ends."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from chaos.faults.link import Break, Link

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
PATIENCE = 10.0


@pytest_asyncio.fixture
async def echo() -> AsyncIterator[int]:
    """The port of a server that says back what it hears."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(100):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


@pytest_asyncio.fixture
async def link(echo: int) -> AsyncIterator[Link]:
    async with Link("test", lambda: [echo]) as made:
        yield made


class Ends:
    """Connections that are closed after the test."""

    def __init__(self) -> None:
        self.made: list[Streams] = []

    async def __call__(self, link: Link) -> Streams:
        self.made.append(await asyncio.open_connection("127.0.0.1", link.port))
        return self.made[-1]


@pytest_asyncio.fixture
async def connect() -> AsyncIterator[Ends]:
    ends = Ends()
    yield ends
    for _, writer in ends.made:
        writer.transport.abort()


async def says(streams: Streams, text: bytes) -> bytes:
    streams[1].write(text)
    async with asyncio.timeout(PATIENCE):
        return await streams[0].readexactly(len(text))


async def silent(streams: Streams) -> bool:
    """Nothing comes, not even an end."""
    try:
        async with asyncio.timeout(0.3):
            await streams[0].read(1)
    except TimeoutError:
        return True
    return False


async def test_it_passes_everything_on(link: Link, connect: Ends) -> None:
    assert await says(await connect(link), b"hello") == b"hello"


async def test_a_cut_resets_old_and_new_connections_and_heals(link: Link, connect: Ends) -> None:
    old = await connect(link)
    await says(old, b"a")
    link.fail(Break.CUT)
    async with asyncio.timeout(PATIENCE):
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await old[0].readexactly(1)
        with pytest.raises((OSError, asyncio.IncompleteReadError)):
            await says(await connect(link), b"b")
    link.heal()
    assert await says(await connect(link), b"c") == b"c"


async def test_a_stall_delivers_afterwards(link: Link, connect: Ends) -> None:
    streams = await connect(link)
    await says(streams, b"a")
    link.fail(Break.STALL)
    streams[1].write(b"b")
    assert await silent(streams)
    link.heal()
    async with asyncio.timeout(PATIENCE):
        assert await streams[0].readexactly(1) == b"b"


async def test_a_blackhole_never_speaks_again_but_new_connections_do(link: Link, connect: Ends) -> None:
    old = await connect(link)
    await says(old, b"a")
    link.fail(Break.BLACKHOLE)
    link.heal()
    old[1].write(b"b")
    assert await silent(old)
    assert await says(await connect(link), b"c") == b"c"


async def test_without_a_target_a_connection_is_reset(connect: Ends) -> None:
    async with Link("test", list) as link:
        async with asyncio.timeout(PATIENCE):
            with pytest.raises((OSError, asyncio.IncompleteReadError)):
                await says(await connect(link), b"a")
