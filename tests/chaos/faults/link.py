"""A stretch of network that can be broken: a TCP forwarder between one component and what it talks to."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import StrEnum

_CHUNK = 1 << 16


class Break(StrEnum):
    """How a network fails."""

    CUT = "cut"
    """Connections are reset, new ones too."""
    STALL = "stall"
    """Nothing gets through meanwhile; afterwards all that was sent arrives (packets were lost and sent again)."""
    BLACKHOLE = "blackhole"
    """Nothing gets through meanwhile, and connections from before stay dead without a word (a gateway forgot them)."""


class Link:
    """Listens on `port` of loopback and forwards to one of `targets()`, tried in order.

    `targets` gives ports of loopback; with none a connection is reset, as by a Service without ready endpoints.
    """

    def __init__(self, name: str, targets: Callable[[], Sequence[int]]) -> None:
        self.name = name
        self.port = 0
        self._targets = targets
        self._server: asyncio.Server | None = None
        self._broken: Break | None = None
        self._open = asyncio.Event()
        self._open.set()
        self._generation = 0
        self._running: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "Link":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def fail(self, how: Break) -> None:
        """From now on the network is broken."""
        self._broken = how
        self._open.clear()
        if how is Break.CUT:
            for task in list(self._running):
                task.cancel()
        if how is Break.BLACKHOLE:
            self._generation += 1

    def heal(self) -> None:
        """The network works again."""
        self._broken = None
        self._open.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        try:
            await self._forward(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()
        except OSError:
            pass
        finally:
            writer.transport.abort()
            self._running.discard(task)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._broken is Break.CUT:
            return
        generation = self._generation
        await self._open.wait()
        for port in self._targets():
            with suppress(OSError):
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
                break
        else:
            return
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, far_writer, generation))
                group.create_task(self._pump(far_reader, writer, generation))
        except* OSError:
            pass
        finally:
            far_writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, generation: int) -> None:
        while chunk := await reader.read(_CHUNK):
            await self._passable(generation)
            writer.write(chunk)
            await writer.drain()
        await self._passable(generation)
        if writer.can_write_eof():
            writer.write_eof()

    async def _passable(self, generation: int) -> None:
        await self._open.wait()
        if generation != self._generation:
            await asyncio.Event().wait()  # a forgotten connection: its ends learn nothing, not even of each other's end
