"""Asking until something holds."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import click

_AGAIN_SECONDS = 0.05


async def polled(
    holds: Callable[[], Awaitable[object]], what: str, seconds: float, *, again_s: float = _AGAIN_SECONDS
) -> None:
    """Ask until it holds. Raises ClickException with `what` if that takes longer than `seconds`."""
    deadline = time.perf_counter() + seconds
    while not await holds():
        if time.perf_counter() > deadline:
            raise click.ClickException(f"waited {seconds:.0f} s in vain for {what}")
        await asyncio.sleep(again_s)
