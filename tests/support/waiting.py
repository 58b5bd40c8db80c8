"""Waiting for a condition instead of sleeping."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def eventually(probe: Callable[[], Awaitable[T | None]], *, seconds: float, what: str, every: float = 0.2) -> T:
    """The first truthy answer of `probe`. Raises AssertionError naming `what` after `seconds`."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        answer = await probe()
        if answer:
            return answer
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain for {what}")
        await asyncio.sleep(every)
