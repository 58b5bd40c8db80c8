"""`--watch`: repeated answers."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

import click

from kube_synergy.live.cluster import connected
from synergy_cli.live.access import Cluster, Where, ask, run_online
from synergy_cli.live.followed import followed
from synergy_cli.live.output import note

T = TypeVar("T")

LEAST_S = 2.0
IDLE = 5.0
"""Between two answers pass so many times the seconds that one took: where nothing can be followed, whoever watches
takes a part of a large cluster's API server only."""


def answer(
    where: Where, question: Callable[[Cluster], Coroutine[Any, Any, T]], write: Callable[[T], None], *, watch: bool
) -> None:
    """Write the answer once, or with `watch` again and again until Ctrl-C. A terminal is cleared before each."""
    if not watch:
        write(ask(where, question))
        return
    with suppress(KeyboardInterrupt):
        run_online(lambda: _repeat(where, question, write))


async def _repeat(
    where: Where, question: Callable[[Cluster], Coroutine[Any, Any, T]], write: Callable[[T], None]
) -> NoReturn:
    """Where a watch fails, everything begins anew: the credentials may have expired, or the user may only list."""
    while True:
        async with connected(where, note) as cluster, followed(cluster) as copies:
            while not copies.failed.is_set():
                begun = time.monotonic()
                click.clear()
                write(await question(copies))
                await asyncio.sleep(pause_s(time.monotonic() - begun))


def pause_s(took_s: float) -> float:
    """Seconds until the answer after one that took so long."""
    return max(LEAST_S, IDLE * took_s)
