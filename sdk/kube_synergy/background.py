"""An event loop in a thread, for calls that do not wait with `await`: also where a loop runs already, as in a
notebook."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future
from functools import cache
from typing import Any, TypeVar, cast

T = TypeVar("T")


@cache
def _loop(process: int) -> asyncio.AbstractEventLoop:
    """The loop of a process: a fork of it has no thread that would run the parent's."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="kube_synergy", daemon=True).start()
    return loop


def start(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Begin the work; it goes on in the background."""
    return asyncio.run_coroutine_threadsafe(work, _loop(os.getpid()))


def run(work: Coroutine[Any, Any, T]) -> T:
    """Do the work and wait for it. Ctrl-C ends it."""
    future = start(work)
    try:
        return future.result()
    finally:
        future.cancel()


def iterate(items: AsyncIterator[T]) -> Iterator[T]:
    """The items as they come."""
    end = object()
    try:
        while (found := run(_next(items, end))) is not end:
            yield cast(T, found)
    finally:
        run(_close(items))


async def _next(items: AsyncIterator[T], end: object) -> T | object:
    return await anext(items, end)


async def _close(items: AsyncIterator[Any]) -> None:
    close = getattr(items, "aclose", None)
    if close is not None:
        await close()
