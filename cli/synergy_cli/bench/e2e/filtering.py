"""How long one filter call takes, as kube-scheduler sees it: over its connection, with many node names."""

import asyncio
import http.client
import json
import ssl
import threading
import time
from dataclasses import dataclass
from typing import Any

from synergy_cli.bench.e2e.percentiles import percentile
from synergy_cli.bench.e2e.product import Product, Replica
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


class Caller:
    """Calls filter for one worker pod, one call after the other every `every_s` seconds, in a thread of its own."""

    def __init__(self, product: Product, replica: Replica, body: bytes, *, every_s: float) -> None:
        tls = ssl.create_default_context(cafile=str(product.authority.certificate))
        certificate = product.client_certificate
        tls.load_cert_chain(str(certificate.certificate), str(certificate.key))
        self._connection = http.client.HTTPSConnection(replica.host, replica.verbs_port, context=tls, timeout=30)
        self._body = body
        self._every_s = every_s
        self._enough = threading.Event()
        self._seconds: list[float] = []

    async def calls(self, count: int) -> list[float]:
        """Seconds of so many calls."""
        return await asyncio.to_thread(self._call, count)

    def start(self) -> "asyncio.Task[list[float]]":
        """Call until `stop`."""
        return asyncio.create_task(asyncio.to_thread(self._call, None))

    def stop(self) -> None:
        """No further calls."""
        self._enough.set()

    def _call(self, count: int | None) -> list[float]:
        seconds: list[float] = []
        while not self._enough.is_set() and (count is None or len(seconds) < count):
            begun = time.perf_counter()
            self._connection.request("POST", "/filter", self._body, {"Content-Type": "application/json"})
            answer = json.loads(self._connection.getresponse().read())
            seconds.append(time.perf_counter() - begun)
            if len(answer["NodeNames"] or []) != 1:
                raise RuntimeError(f"filter did not let the planned node pass: {answer['Error']}")
            self._enough.wait(self._every_s)
        self._connection.close()
        return seconds


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
