"""How long one filter call takes, as kube-scheduler sees it: over its connection, with many node names."""

import asyncio
import http.client
import json
import multiprocessing
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import click

from synergy_cli.bench.e2e.percentiles import percentile
from synergy_cli.bench.e2e.product import Product
from synergy_kube import KubeClient
from synergy_kube.resources import PODS


@dataclass(frozen=True)
class Filtering:
    """Milliseconds of filter calls with `names` node names each, from sending to the whole answer."""

    names: int
    calls: int
    p50_ms: float
    p99_ms: float
    slowest_ms: float


@dataclass(frozen=True)
class Server:
    """Where filter is called, who signed its certificate, and the caller's own."""

    host: str
    port: int
    authority: str
    certificate: str
    key: str


class Caller:
    """Calls filter for one worker pod, one call after the other every `every_s` seconds, in a process of its own: in
    this one it would wait for whatever else Python does here."""

    def __init__(self, product: Product, address: str, body: bytes, *, every_s: float) -> None:
        own = product.client_certificate
        files = (str(file) for file in (product.authority.certificate, own.certificate, own.key))
        context = multiprocessing.get_context("spawn")
        self._pipe, self._theirs = context.Pipe()
        host, _, port = address.rpartition(":")
        server = Server(host, int(port), *files)
        self._process = context.Process(target=_call, args=(self._theirs, server, body, every_s), daemon=True)

    async def ready(self) -> None:
        """Start the process and wait until it is connected."""
        self._process.start()
        self._theirs.close()  # else the end of the process would not end the pipe
        try:
            await asyncio.to_thread(self._pipe.recv)
        except (EOFError, ConnectionError) as error:
            raise click.ClickException("the process that calls filter did not connect") from error

    async def calls(self, count: int) -> list[float]:
        """Seconds of so many calls, once it is ready."""
        return await self._called(count)

    def start(self) -> "asyncio.Task[list[float]]":
        """Call until `stop`, once it is ready."""
        return asyncio.create_task(self._called(None))

    def stop(self) -> None:
        """No further calls."""
        with suppress(ConnectionError):  # it ended before, and the task of `start` says why
            self._pipe.send(None)

    async def _called(self, count: int | None) -> list[float]:
        try:
            self._pipe.send(count)
            found = await asyncio.to_thread(self._pipe.recv)
        except (EOFError, ConnectionError) as error:
            raise click.ClickException("the process that calls filter died") from error
        self._process.join()
        if isinstance(found, str):
            raise click.ClickException(found)
        return list(found)


def _call(pipe: Connection, server: Server, body: bytes, every_s: float) -> None:
    tls = ssl.create_default_context(cafile=server.authority)
    tls.load_cert_chain(server.certificate, server.key)
    connection = http.client.HTTPSConnection(server.host, server.port, context=tls, timeout=30)
    connection.connect()
    pipe.send(None)
    count = pipe.recv()
    seconds: list[float] = []
    while len(seconds) < count if count is not None else not pipe.poll():
        begun = time.perf_counter()
        connection.request("POST", "/filter", body, {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        seconds.append(time.perf_counter() - begun)
        if len(answer["NodeNames"] or []) != 1:
            pipe.send(f"filter did not let the planned node pass: {answer['Error']}")
            return
        time.sleep(every_s)
    connection.close()
    pipe.send(seconds)


async def filter_body(kube: KubeClient, namespace: str, pod: str, names: int) -> bytes:
    """A filter request for the pod, with its own node among `names` node names."""
    item = await kube.get(PODS, pod, namespace)
    node = item["spec"]["nodeName"]
    others = [f"another-node-{index:04}" for index in range(names - 1)]
    request: dict[str, Any] = {
        "Pod": item,
        "Nodes": None,
        "NodeNames": [*others[: names // 2], node, *others[names // 2 :]],
    }
    return json.dumps(request).encode()


def summary(seconds: list[float], names: int) -> Filtering:
    """Percentiles of the calls."""
    return Filtering(
        names=names,
        calls=len(seconds),
        p50_ms=1000 * percentile(seconds, 0.5),
        p99_ms=1000 * percentile(seconds, 0.99),
        slowest_ms=1000 * max(seconds),
    )
