"""What reading a large cluster costs: the memory at its peak, and how long nothing else runs on the event loop."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

PODS = 20_000
MOST_MEGABYTES = 90.0
"""Beside what is kept of 20,000 pods (some 25 MB): a page as it came and what the allocator does not give back. In one
piece the pods are 150 MB of JSON alone."""
MOST_STALL_MS = 150.0
"""Of CPU time. Reading the list in one piece takes a second or more."""
_READER = Path(__file__).parents[2] / "support" / "api_server" / "list_cost.py"


def pod(number: int) -> bytes:
    """A pod of a common size: some 7 KB of JSON."""
    mounts = [{"name": f"volume-{at}", "mountPath": f"/mnt/volume-{at}", "readOnly": True} for at in range(8)]
    variables = [{"name": f"VARIABLE_{at}", "value": "x" * 60} for at in range(30)]
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


class Cluster:
    """A server that lists `PODS` pods, in pages where it is asked for pages, and nothing else."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """A list, or a watch in which nothing happens."""
        if "watch" in request.query:
            await asyncio.sleep(3600)
        if request.path != "/api/v1/pods":
            return web.json_response({"metadata": {"resourceVersion": "10"}, "items": []})
        most, first = int(request.query.get("limit", 0)), int(request.query.get("continue", 0))
        self.asked.append(most)
        last = min(PODS, first + (most or PODS))
        rest = f', "continue": "{last}"' if last < PODS else ""
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(f'{{"metadata": {{"resourceVersion": "10"{rest}}}, "items": ['.encode())
        for start in range(first, last, 100):
            chunk = b",".join(pod(number) for number in range(start, min(start + 100, last)))
            await response.write((b"," if start > first else b"") + chunk)
        await response.write(b"]}")
        return response


@pytest.fixture
async def cluster() -> AsyncIterator[tuple[Cluster, str]]:
    served = Cluster()
    app = web.Application()
    app.router.add_get("/{path:.*}", served.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    yield served, f"http://{host}:{port}"
    await runner.cleanup()


async def test_a_cluster_of_20_000_pods_is_read_within_its_bounds_of_memory_and_patience(
    cluster: tuple[Cluster, str],
) -> None:
    served, url = cluster
    reader = await asyncio.create_subprocess_exec(sys.executable, str(_READER), url, stdout=asyncio.subprocess.PIPE)
    answer, _ = await asyncio.wait_for(reader.communicate(), 120)
    assert reader.returncode == 0
    cost = json.loads(answer)
    sys.stdout.write(f"{cost}\n")
    assert cost["pods"] == PODS
    assert cost["peak_megabytes"] < MOST_MEGABYTES, cost
    assert cost["longest_stall_ms"] < MOST_STALL_MS, cost
    assert served.asked == [500] * 40
