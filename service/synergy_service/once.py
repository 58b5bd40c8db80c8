"""A program that works on the cluster once, then exits, as a Kubernetes Job runs it."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import aiohttp

from synergy_kube import KubeClient
from synergy_kube.errors import ApiError, NoClusterError

AnySettings = TypeVar("AnySettings")


def run_once(
    name: str,
    read_settings: Callable[[Mapping[str, str]], AnySettings],
    work: Callable[[KubeClient, AnySettings], Awaitable[list[str]]],
    final: tuple[type[Exception], ...] = (),
) -> int:
    """Log each line that `work` returns, and return the exit code.

    Exit code 1: the API server failed, a retry may help. Exit code 2: the settings or the cluster must change first.
    This is the result of a ValueError in `read_settings`, and of an exception of a type in `final`.
    """
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    log = logging.getLogger(name)
    try:
        settings = read_settings(os.environ)
    except ValueError as error:
        log.error("%s", error)
        return 2
    return asyncio.run(_work(log, settings, work, (NoClusterError, *final)))


async def _work(
    log: logging.Logger,
    settings: AnySettings,
    work: Callable[[KubeClient, AnySettings], Awaitable[list[str]]],
    final: tuple[type[Exception], ...],
) -> int:
    try:
        async with await KubeClient.connect(os.environ.get("SYNERGY_KUBECONFIG") or None) as kube:
            for line in await work(kube, settings):
                log.info("%s", line)
    except final as error:
        log.error("%s", error)
        return 2
    except (ApiError, aiohttp.ClientError, TimeoutError) as error:
        log.error("the API server: %s", error)
        return 1
    return 0
