"""The scheduler verbs under bodies that are nearly right: always an answer in the right shape, nothing written, nothing
kept. `FUZZ_BODIES=20000` goes on for longer; a failure names the seed that replays it."""

import asyncio
import gc
import json
import logging
import os
import random
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import httpx
import msgspec
import pytest
from aiohttp import web

from support import papers
from support.api_server.watch_server import WatchServer, following
from support.extender.cluster import allocation, job_object, pod_object, share, worker_labels
from support.extender.mutation import mutated
from support.extender.servers import parts_alone, running
from synergy_extender.cluster.cache import ClusterCache
from synergy_extender.metrics import Metrics
from synergy_extender.verbs.bind import Binder
from synergy_extender.verbs.placements import ClusterPlacements
from synergy_extender.verbs.wire import BindingResult, FilterResult, HostPriority, PreemptionResult
from synergy_extender.web.scheduler_app import SchedulerVerbs, scheduler_app
from synergy_service.operations import ops_app
from synergy_service.servers import Endpoint

BODIES = int(os.environ.get("FUZZ_BODIES", "600"))
RECORDED = papers.found("extender")
SHAPES = {
    "filter": FilterResult,
    "prioritize": list[HostPriority],
    "bind": BindingResult,
    "preempt": PreemptionResult,
}


class Recording(WatchServer):
    """Remembers whatever is asked of the API server but a read."""

    def __init__(self, *jobs: dict[str, object]) -> None:
        super().__init__(*jobs)
        self.writes: list[tuple[str, str]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.method != "GET":
            self.writes.append((request.method, request.path))
        return await super().answer(request)


class World:
    """Two jobs: `j` is admitted and its worker planned on n1; `k` is not admitted yet, so that nothing may be bound."""

    def __init__(self, server: Recording, client: httpx.AsyncClient, cache: ClusterCache) -> None:
        self.server = server
        self.client = client
        self.cache = cache

    async def ask(self, verb: str, body: bytes) -> bytes:
        answer = await self.client.post(f"/{verb}", content=body)
        assert answer.status_code == 200
        return answer.content


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    until = time.time() + 1000
    admitted = job_object("j", status={"allocation": allocation(share("n1"), until=until)})
    waiting = job_object("k", status={"allocation": allocation(share("n1"), until=until, admitted=False)})
    server = Recording(admitted, waiting)
    for name in ("j", "k"):
        pod = pod_object(f"{name}-1-0", gpus=1, labels=worker_labels(name), planned="n1")
        server.now[f"/api/v1/namespaces/team/pods/{name}-1-0"] = pod
        item = admitted if name == "j" else waiting
        server.now[f"/apis/kube-synergy.dev/v1alpha1/namespaces/team/trainingjobs/{name}"] = item
    async with following(server) as (client, cache):
        placements = ClusterPlacements(client, cache)
        metrics = Metrics()
        verbs = SchedulerVerbs(placements, Binder(placements, cache.assumed), metrics, lambda: cache.synced)
        transport = httpx.ASGITransport(app=scheduler_app(verbs, metrics))
        async with httpx.AsyncClient(transport=transport, base_url="http://extender") as http:
            yield World(server, http, cache)


def seeds() -> dict[str, list[bytes]]:
    """Requests by verb: of our own, and those that a real kube-scheduler sent where they are at hand."""
    found: dict[str, list[bytes]] = {verb: [] for verb in SHAPES}
    for name in ("j", "k"):
        pod = pod_object(f"{name}-1-0", gpus=1, labels=worker_labels(name), planned="n1")
        nodes = {"items": [{"metadata": {"name": node}} for node in ("n1", "n2")]}
        for body in ({"Pod": pod, "NodeNames": ["n1", "n2"]}, {"Pod": pod, "Nodes": nodes}):
            for verb in ("filter", "prioritize"):
                found[verb].append(json.dumps(body).encode())
        victims = {"n1": {"Pods": [{"UID": "u"}], "NumPDBViolations": 0}}
        found["preempt"].append(json.dumps({"Pod": pod, "NodeNameToMetaVictims": victims}).encode())
    bind = {"PodName": "k-1-0", "PodNamespace": "team", "PodUID": "uid-k-1-0", "Node": "n1"}
    found["bind"].append(json.dumps(bind).encode())
    for verb, bodies in found.items():
        recorded = sorted(RECORDED.glob(f"*/{verb}-*.request.json")) if RECORDED is not None else []
        bodies += [file.read_bytes() for file in recorded]
    return found


async def test_the_seeds_reach_where_pods_are_placed_and_refused() -> None:
    async with world() as at:
        placed = json.loads(await at.ask("filter", seeds()["filter"][0]))
        assert placed["NodeNames"] == ["n1"]
        assert json.loads(await at.ask("bind", seeds()["bind"][0]))["Error"]
        assert at.server.writes == []


async def test_whatever_is_asked_the_answer_has_its_shape_and_nothing_is_written() -> None:
    known = seeds()
    async with world() as at:
        before = dict(at.cache.jobs)
        for number in range(BODIES):
            chance = random.Random(number)
            verb = chance.choice(list(SHAPES))
            body = mutated(chance.choice(known[verb]), chance)
            try:
                msgspec.json.decode(await at.ask(verb, body), type=SHAPES[verb])
            except Exception as error:
                raise AssertionError(f"seed {number}: {verb} {body[:2000]!r}") from error
        assert at.server.writes == []
        assert at.cache.jobs == before
        assert [at.cache.assumed.node_of(f"uid-{name}-1-0") for name in ("j", "k")] == ["", ""]


async def test_names_that_would_lead_elsewhere_are_asked_nowhere() -> None:
    async with world() as at:
        for name in ("..", "../../nodes/n1", "k-1-0?watch=1", "K-1-0", "", "x" * 300, "k-1-0/log"):
            bind = {"PodName": name, "PodNamespace": "team", "PodUID": "uid-k-1-0", "Node": "n1"}
            answer = json.loads(await at.ask("bind", json.dumps(bind).encode()))
            assert "gone" in answer["Error"], name
            bind = {"PodName": "k-1-0", "PodNamespace": name, "PodUID": "uid-k-1-0", "Node": "n1"}
            assert "gone" in json.loads(await at.ask("bind", json.dumps(bind).encode()))["Error"], name


async def test_no_memory_is_kept_of_what_was_asked(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)  # pytest keeps what is logged
    known, bodies = seeds(), []
    for number in range(200):
        chance = random.Random(number)
        verb = chance.choice(list(SHAPES))
        bodies.append((verb, mutated(chance.choice(known[verb]), chance)))
    async with world() as at:

        async def all_asked() -> int:
            for verb, body in bodies:
                await at.ask(verb, body)
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        await all_asked()
        tracemalloc.start()
        try:
            kept = [await all_asked() for _ in range(4)]
        finally:
            tracemalloc.stop()
    # what is kept of each of 200 requests would be far more, and in each pass; tables that grow do so in one
    assert min(after - before for before, after in pairwise(kept)) < 16 << 10


async def test_bytes_that_are_no_http_do_not_stop_a_server() -> None:
    seed = b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}"
    async with parts_alone() as parts, running(Endpoint(ops_app(parts.metrics.registry, lambda: ""), 0)) as (port,):
        for number in range(150):
            chance = random.Random(number)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            changed = bytearray(seed)
            for _ in range(chance.randint(0, 6)):
                changed[chance.randrange(len(changed))] = chance.randrange(256)
            writer.write(bytes(changed))
            writer.write_eof()
            status = await asyncio.wait_for(reader.readline(), 20)
            assert not status.startswith(b"HTTP/1.1 5"), (number, status)
            writer.close()
