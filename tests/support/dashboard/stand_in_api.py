"""A server of our own that lists, watches and reviews like an API server, for the dashboard without a cluster.

`PYTHONPATH=tests python -m support.dashboard.stand_in_api` serves a small cluster whose jobs change all the time, with
the tokens `admin` (sees everything), `team` (sees namespace team) and `nobody`. Start the dashboard beside it with the
kubeconfig that it writes.
"""

import asyncio
import itertools
import random
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import yaml
from aiohttp import web

from support.extender.cluster import allocation, job_object, node_object, share
from synergy_api.timestamps import format_time
from synergy_kube import Resource
from synergy_kube.resources import NAMESPACES, NODES, SCHEDULING_POLICIES, TRAINING_JOBS

Object = dict[str, Any]
USERS = {"admin": {"*"}, "team": {"team"}, "nobody": set[str]()}
"""By token, and name, the namespaces that a user may see."""
_GI = 1 << 30


class StandInApi:
    """Holds objects by the path of their collection. `put` and `drop` tell the watches. `posts` counts reviews."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[tuple[str, str], Object]] = defaultdict(dict)
        self.users: dict[str, set[str]] = {name: set(namespaces) for name, namespaces in USERS.items()}
        self.posts: list[Object] = []
        self.methods: list[tuple[str, str]] = []
        self._watches: dict[str, set[asyncio.Queue[Object]]] = defaultdict(set)
        self._versions = itertools.count(100)

    def put(self, resource: Resource, item: Object) -> None:
        """An object came or changed."""
        path, metadata = resource.path(), item["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        kind = "MODIFIED" if key in self.objects[path] else "ADDED"
        now = {**item, "metadata": {**metadata, "resourceVersion": str(next(self._versions))}}
        self.objects[path][key] = now
        self._tell(path, kind, now)

    def drop(self, resource: Resource, name: str, namespace: str = "") -> None:
        """An object went."""
        path = resource.path()
        gone = self.objects[path].pop((namespace, name))
        version = {**gone["metadata"], "resourceVersion": str(next(self._versions))}
        self._tell(path, "DELETED", {**gone, "metadata": version})

    def _tell(self, path: str, kind: str, item: Object) -> None:
        for queue in self._watches[path]:
            queue.put_nowait({"type": kind, "object": item})

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The answer to any request."""
        self.methods.append((request.method, request.path))
        if request.method == "POST":
            return web.json_response(self._review(request.path, await request.json()), status=201)
        if request.method != "GET":
            return web.json_response({"code": 405, "message": "read only"}, status=405)
        if "watch" in request.query:
            return await self._watch(request)
        prefix, _, rest = request.path.partition("/namespaces/")
        if rest:
            namespace, plural, *name = rest.split("/")
            known = self.objects.get(f"{prefix}/{plural}", {})
            if not name:
                return _listed([item for (there, _), item in known.items() if there == namespace])
            found = known.get((namespace, name[0]))
            missing = {"code": 404, "reason": "NotFound", "message": f"{name[0]} not found"}
            return web.json_response(found or missing, status=200 if found else 404)
        return _listed(list(self.objects.get(request.path, {}).values()))

    def _review(self, path: str, body: Object) -> Object:
        self.posts.append(body)
        spec = body["spec"]
        if path.endswith("tokenreviews"):
            known = spec["token"] in self.users
            return {"status": {"authenticated": True, "user": {"username": spec["token"]}} if known else {}}
        namespaces = self.users.get(spec["user"], set())
        return {"status": {"allowed": bool({"*", spec["resourceAttributes"].get("namespace", "*")} & namespaces)}}

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        queue: asyncio.Queue[Object] = asyncio.Queue()
        self._watches[request.path].add(queue)
        try:
            async with asyncio.timeout(float(request.query.get("timeoutSeconds", 10))):
                while True:
                    await response.write(msgspec.json.encode(await queue.get()) + b"\n")
        except (TimeoutError, ConnectionError):
            pass
        finally:
            self._watches[request.path].discard(queue)
        return response


def _listed(items: list[Object]) -> web.Response:
    body = {"metadata": {"resourceVersion": "99"}, "items": items}
    return web.Response(body=msgspec.json.encode(body), content_type="application/json")


@asynccontextmanager
async def serving(api: StandInApi) -> AsyncIterator[str]:
    """Its URL, while it serves on loopback."""
    app = web.Application(client_max_size=1 << 24)
    app.router.add_route("*", "/{path:.*}", api.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


def kubeconfig(url: str, file: Path) -> Path:
    """A kubeconfig for the server."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "stand-in", "cluster": {"server": url}}],
        "users": [{"name": "stand-in", "user": {}}],
        "contexts": [{"name": "stand-in", "context": {"cluster": "stand-in", "user": "stand-in"}}],
        "current-context": "stand-in",
    }
    file.write_text(yaml.safe_dump(config))
    return file


def fill(api: StandInApi, *, nodes: int, jobs: int, namespaces: int, seed: int = 1) -> None:
    """Nodes of 8 GPUs of two types, and jobs that hold them or wait; templates and matrices as people write them."""
    chance = random.Random(seed)
    api.put(SCHEDULING_POLICIES, {"metadata": {"name": "default"}, "spec": {"policy": "las", "roundSeconds": 60}})
    for index in range(nodes):
        gpu_type = "T4" if index % 2 else "V100"
        api.put(NODES, node_object(f"node-{index:04}", cpu=64, memory_gib=512, gpu_type=gpu_type))
    names = ["team", *(f"team-{number}" for number in range(1, namespaces))]
    for name in names:
        api.put(NAMESPACES, {"metadata": {"name": name}})
    free = [8] * nodes
    first = 0
    for index in range(jobs):
        gpus = chance.choice((1, 1, 2, 4, 8))
        place = next((node for node in range(first, min(first + 8, nodes)) if free[node] >= gpus), None)
        if place is not None:
            free[place] -= gpus
            while first < nodes and free[first] == 0:
                first += 1
        api.put(TRAINING_JOBS, job(index, names[index % namespaces], gpus, place, chance))


def job(index: int, namespace: str, gpus: int, node: int | None, chance: random.Random) -> Object:
    """A job as large as a real one."""
    gpu_type = "T4" if node is not None and node % 2 else "V100"
    matrix = {
        "cpuMillis": [1000 * cpus for cpus in range(1, 25)],
        "memoryBytes": [16 * _GI * step for step in range(1, 9)],
        "stepsPerSecond": [[0.1 * cpus * step for step in range(1, 9)] for cpus in range(1, 25)],
    }
    profile = {"state": "Complete", "matrices": [{"gpuType": one, **matrix} for one in ("V100", "T4")]}
    status: Object = {"profile": profile, "service": {"run": 1, "attainedGPUSeconds": chance.uniform(0, 1e5)}}
    if node is None:
        message = f"needs {gpus} GPUs; none is free, and the jobs that hold them are before it"
        queue = {"position": index + 1, "reason": "NoFreeGPU", "message": message}
        status |= {"phase": "Queued", "queue": queue}
    else:
        place = share(f"node-{node:04}", gpus, gpus * 4000, gpus * 32 * _GI)
        status["allocation"] = allocation(place, gpuType=gpu_type, stepsPerSecond=3.0, proportionalStepsPerSecond=2.0)
        status["service"] |= {"runningSince": format_time(time.time() - 600)}
        status["progress"] = {"run": 1, "steps": chance.randrange(1000), "stepsPerSecond": 2.5}
        status["phase"] = "Running"
    made = job_object(f"job-{index:05}", gpus=gpus, status=status)
    metadata = {**made["metadata"], "namespace": namespace, "creationTimestamp": format_time(time.time() - 5000)}
    container = {
        **made["spec"]["template"]["spec"]["containers"][0],
        "env": [{"name": f"E{n}", "value": "x" * 40} for n in range(20)],
    }
    template = {"spec": {"containers": [container]}}
    managed = [{"manager": "kubectl", "fieldsV1": {f"f:{n}": {} for n in range(100)}}]
    return {**made, "metadata": {**metadata, "managedFields": managed}, "spec": {**made["spec"], "template": template}}


def stepped(item: Mapping[str, Any], steps: int) -> Object:
    """A running job some steps later."""
    progress = item["status"]["progress"]
    later = {**progress, "steps": min(progress["steps"] + steps, item["spec"]["steps"])}
    return {**item, "status": {**item["status"], "progress": later}}


async def _main(file: Path) -> None:
    api, chance = StandInApi(), random.Random(2)
    fill(api, nodes=12, jobs=60, namespaces=3)
    async with serving(api) as url:
        print(f"KUBECONFIG is {kubeconfig(url, file)}; tokens: {', '.join(USERS)}", flush=True)
        while True:
            await asyncio.sleep(0.5)
            jobs = [one for one in api.objects[TRAINING_JOBS.path()].values() if "progress" in one["status"]]
            api.put(TRAINING_JOBS, stepped(chance.choice(jobs), 5))


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1] if len(sys.argv) > 1 else "/tmp/stand-in.kubeconfig")))
