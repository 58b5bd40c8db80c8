"""What reading a large cluster costs: the memory at its peak, and how long nothing else runs on the event loop."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

PODS = 20_000
MOST_MEGABYTES = 90.0
"""Beside what is kept of 20,000 pods (some 25 MB): a page as it came and what the allocator does not give back. In one
piece the pods are 107 MB of JSON alone."""
MOST_STALL_MS = 150.0
"""Of CPU time. Reading the list in one piece takes a second or more."""
LARGE_PODS = 400
"""Of 1.4 MB each. In one piece they are 560 MB of JSON, and more than a GB in the reader."""
_READER = Path(__file__).parents[2] / "support" / "api_server" / "list_cost.py"


def pod(number: int, text: str = "x" * 60) -> bytes:
    """A pod of a common size: some 5 KB of JSON. Thirty variables have the text."""
    mounts = [{"name": f"volume-{at}", "mountPath": f"/mnt/volume-{at}", "readOnly": True} for at in range(8)]
    variables = [{"name": f"VARIABLE_{at}", "value": text} for at in range(30)]
    container = {
        "name": "train",
        "image": "registry.example/train:1",
        "env": variables,
        "volumeMounts": mounts,
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
    }
    managed = [
        {"manager": "kubelet", "operation": "Update", "fieldsV1": {f"f:field-{at}": {"f:x": {}} for at in range(60)}}
    ]
    metadata = {
        "name": f"pod-{number}",
        "namespace": f"team-{number % 50}",
        "uid": f"00000000-0000-0000-0000-{number:012}",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app": "batch"},
        "managedFields": managed,
    }
    statuses = [{"name": "train", "ready": True, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]
    spec = {"nodeName": f"node-{number % 500}", "containers": [container]}
    return msgspec.json.encode(
        {"metadata": metadata, "spec": spec, "status": {"phase": "Running", "containerStatuses": statuses}}
    )


def large_pod(number: int) -> bytes:
    """A pod of nearly the size that etcd stores."""
    return pod(number, "x" * 46_000)


class Cluster:
    """A server that lists pods, in pages where it is asked for pages, and nothing else."""

    def __init__(self, count: int, make: Callable[[int], bytes]) -> None:
        self._count, self._make = count, make
        self.asked: list[int] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """A list, or a watch in which nothing happens."""
        if "watch" in request.query:
            await asyncio.sleep(3600)
        if request.path != "/api/v1/pods":
            return web.json_response({"metadata": {"resourceVersion": "10"}, "items": []})
        most, first = int(request.query.get("limit", 0)), int(request.query.get("continue", 0))
        self.asked.append(most)
        last = min(self._count, first + (most or self._count))
        rest = f', "continue": "{last}"' if last < self._count else ""
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        with suppress(ConnectionError):  # a reader need not read to the end
            await response.write(f'{{"metadata": {{"resourceVersion": "10"{rest}}}, "items": ['.encode())
            for number in range(first, last):
                await response.write((b"," if number > first else b"") + self._make(number))
            await response.write(b"]}")
        return response


@asynccontextmanager
async def served(cluster: Cluster) -> AsyncIterator[str]:
    """The address of the server."""
    app = web.Application()
    app.router.add_get("/{path:.*}", cluster.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    yield f"http://{host}:{port}"
    await runner.cleanup()


async def cost_of_reading(cluster: Cluster) -> dict[str, Any]:
    """What it costs another process to read it."""
    async with served(cluster) as url:
        reader = await asyncio.create_subprocess_exec(sys.executable, str(_READER), url, stdout=asyncio.subprocess.PIPE)
        answer, _ = await asyncio.wait_for(reader.communicate(), 120)
    assert reader.returncode == 0
    cost: dict[str, Any] = json.loads(answer)
    sys.stdout.write(f"{cost}, {len(cluster.asked)} requests\n")
    return cost


async def test_a_cluster_of_20_000_pods_is_read_within_its_bounds_of_memory_and_patience() -> None:
    cluster = Cluster(PODS, pod)
    cost = await cost_of_reading(cluster)
    assert cost["pods"] == PODS
    assert cost["peak_megabytes"] < MOST_MEGABYTES, cost
    assert cost["longest_stall_ms"] < MOST_STALL_MS, cost
    assert cluster.asked == [500] * 40


async def test_hundreds_of_the_largest_pods_are_read_within_the_same_bound_of_memory() -> None:
    cluster = Cluster(LARGE_PODS, large_pod)
    cost = await cost_of_reading(cluster)
    assert cost["pods"] == LARGE_PODS
    assert cost["peak_megabytes"] < MOST_MEGABYTES, cost
    assert len(cluster.asked) < LARGE_PODS / 4
