"""The API server: whether it answers, and the network between it and etcd as one of the links that can be broken."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from chaos.faults.link import Link
from support.waiting import eventually
from synergy_devcluster import Cluster
from synergy_devcluster.programs.processes import reap
from synergy_kube import ApiError, Conflict, KubeClient, NotFound
from synergy_kube.resources import NODES, Resource

UNREACHABLE = (ApiError, aiohttp.ClientError, TimeoutError, OSError)
"""What a request raises that the API server did not do."""
STORE_LINK = "api-server-etcd"
_ETCD_PORT = 2379
_INSIST_SECONDS = 180.0
_ONE_CALL_SECONDS = 5
_REFUSES_FOR_NOW = (401, 403, 429)


async def insist(call: Callable[[], Awaitable[Any]]) -> None:
    """Call until the API server answers. That something is not there, or has been done before, is an answer. Raises
    the last error after three minutes."""
    deadline = time.monotonic() + _INSIST_SECONDS
    while True:
        try:
            async with asyncio.timeout(_ONE_CALL_SECONDS):
                await call()
        except (Conflict, NotFound):
            return  # an answer was lost, or there is nothing to do it to
        except UNREACHABLE:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.2)
        else:
            return


async def created(kube: KubeClient, resource: Resource, manifest: Mapping[str, Any], namespace: str) -> None:
    """Create an object as soon as the API server takes it. Raises ApiError if it refuses the object for good."""
    while True:
        try:
            await kube.create(resource, manifest, namespace)
        except Conflict:
            return  # an answer was lost
        except UNREACHABLE as error:
            if isinstance(error, ApiError) and 400 <= error.code < 500 and error.code not in _REFUSES_FOR_NOW:
                raise
            await asyncio.sleep(0.5)
        else:
            return


async def answers(kube: KubeClient) -> bool:
    """Whether it does what it is asked."""
    try:
        return bool(await kube.list(NODES))
    except UNREACHABLE:
        return False


@asynccontextmanager
async def store_link(cluster: Cluster, kube: KubeClient) -> AsyncIterator[Link]:
    """The API server, started again for it, reaches etcd through this link alone; afterwards as it did before."""
    async with Link(STORE_LINK, lambda: [_ETCD_PORT]) as link:
        before = await _reaches_etcd_by(cluster, kube, f"http://127.0.0.1:{link.port}")
        try:
            yield link
        finally:
            await _reaches_etcd_by(cluster, kube, before)


async def _reaches_etcd_by(cluster: Cluster, kube: KubeClient, url: str) -> str:
    """Start the API server again with this address of etcd, and wait until it answers; the address that it had."""
    before = cluster.component("kube-apiserver").set_option("etcd-servers", url)
    await start_again(cluster, kube)
    return before


async def start_again(cluster: Cluster, kube: KubeClient) -> None:
    """Kill the API server, start it on its data, and wait until it answers. It has forgotten all events of before: a
    watch from an older version is answered with 410."""
    server = cluster.component("kube-apiserver")
    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.start)
    reap()

    await eventually(lambda: answers(kube), seconds=180, what="the API server to answer")
