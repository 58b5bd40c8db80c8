"""A placement-sensitive policy on a cluster: who was measured to be slow when spread waits for GPUs close together, has
such as nobody else wants meanwhile, is moved together when there is room, and the books tell the time apart.

Takes about two minutes: rounds of 5 s on two fake nodes.
"""

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest
import pytest_asyncio

from support.on_cluster.components import kill
from support.on_cluster.jobs import GIB, fake_template, matrix, reaches, submit
from support.on_cluster.neighbours import HOST, label
from support.on_cluster.observer import Observer
from support.programs import run
from support.waiting import eventually
from synergy_api.names import MANAGER_PROGRESS
from synergy_api.timestamps import parse_time
from synergy_cli.product import NAMESPACE
from synergy_devcluster import Cluster
from synergy_kube import KubeClient
from synergy_kube.resources import PODS, SECRETS, TRAINING_JOBS

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("pools", "everything_allowed"), pytest.mark.timeout(400)]

ROUND_S = 5
NODES = ["fake-t4-018", "fake-t4-019"]
Json = dict[str, Any]
Follow = Callable[..., Awaitable[None]]


@pytest_asyncio.fixture
async def nodes(kube: KubeClient) -> AsyncIterator[list[str]]:
    """Two fake nodes with 8 GPUs each that only this test's jobs ask for."""
    await label(kube, NODES, pool="sensitive")
    yield NODES
    await label(kube, NODES, pool=None)


class Scene:
    """Jobs on the two nodes: `here` and `there` keep five GPUs of each, `narrow-1` and `narrow-2` have the other three
    and three, where nobody has a reason to move, and `wide` wants six."""

    def __init__(self, kube: KubeClient, namespace: str) -> None:
        self._kube = kube
        self._namespace = namespace

    async def set(self, nodes: list[str]) -> None:
        for name, node in zip(("here", "there"), nodes, strict=True):
            await self._submit(name, 5, {HOST: node}, preemption="Never")
        for name in ("here", "there"):
            await self.reaches(name, "Running")
        for name in ("narrow-1", "narrow-2"):
            await self._submit(name, 3, {"pool": "sensitive"})
        for name in ("narrow-1", "narrow-2"):
            await self.reaches(name, "Running")
        await self._submit("wide", 6, {"pool": "sensitive"}, suspend=True)
        await self.reaches("wide", "Suspended")
        speeds = [{"gpuType": "T4", "nodes": n, "relativeSpeed": s, "reports": 5} for n, s in ((1, 1.0), (2, 0.4))]
        said = {"status": {"progress": {"placements": speeds}}}
        await self._kube.apply(
            TRAINING_JOBS, "wide", said, namespace=self._namespace, manager=MANAGER_PROGRESS, subresource="status"
        )
        await self.suspend("wide", False)

    async def _submit(self, name: str, gpus: int, on: Json, **spec: Any) -> None:
        template = fake_template(3600)
        template["spec"] |= {"nodeSelector": on, "terminationGracePeriodSeconds": 0}
        curve = {1000 * gpus: float(gpus), 3000 * gpus: float(gpus)}
        profile = {"mode": "Provided", "matrices": [matrix("T4", curve, gpus * GIB)]}
        fixed = {"steps": 1_000_000, "gpuTypes": ["T4"], "preemption": "Signal", "profile": profile}
        await submit(self._kube, self._namespace, name, **{"gpus": gpus, "template": template, **fixed, **spec})

    async def suspend(self, name: str, suspended: bool) -> None:
        await self._kube.merge_patch(TRAINING_JOBS, name, {"spec": {"suspend": suspended}}, self._namespace)

    async def end(self, *names: str) -> None:
        for name in names:
            await self._kube.delete(TRAINING_JOBS, name, self._namespace)

    async def reaches(self, name: str, phase: str) -> Json:
        """The job's status once it is in the phase."""
        found: Json = (await reaches(self._kube, self._namespace, name, phase, seconds=60))["status"]
        return found

    async def status(self, name: str) -> Json:
        found: Json = (await self._kube.get(TRAINING_JOBS, name, self._namespace)).get("status") or {}
        return found

    async def runs_again(self, name: str) -> Json:
        """The job's status once a second run of it is under way."""

        async def second() -> Json | None:
            status = await self.status(name)
            started = status["allocation"]["run"] == 2 and "runningSince" in status["service"]
            return status if started else None

        return await eventually(second, seconds=60, what=f"{name} to run for the second time")

    async def stays(self, name: str, phase: str, run: int, rounds: int = 3) -> None:
        """Nothing becomes of the job for some rounds."""
        for _ in range(2 * rounds):
            await asyncio.sleep(ROUND_S / 2)
            status = await self.status(name)
            assert (status["phase"], status.get("allocation", {}).get("run", 0)) == (phase, run), json.dumps(status)


class Planner:
    """What the extender's replicas take the state of the cluster for."""

    def __init__(self, kube: KubeClient, context: ssl.SSLContext, token: str) -> None:
        self._kube = kube
        self._context = context
        self._headers = {"Authorization": f"Bearer {token}"}

    async def received(self, name: str) -> tuple[float, float, float]:
        """On the T4s: seconds that the job has had, those of them in which it lay spread, and when that was so."""
        document = await eventually(self._snapshot, seconds=60, what="a replica of the extender to answer")
        (job,) = (job for job in document["jobs"] if job["name"] == name)
        spread = job.get("received_spread_s", {})
        return job["received_s"].get("T4", 0.0), spread.get("T4", 0.0), document["now"]

    async def _snapshot(self) -> Json | None:
        for pod in (await self._kube.list(PODS, NAMESPACE))["items"]:
            address = pod["status"].get("podIP")
            if pod["metadata"]["name"].startswith("kube-synergy-extender-") and address:
                async with httpx.AsyncClient(base_url=f"https://{address}:9444", verify=self._context) as api:
                    try:
                        answer = await api.get("/v1/snapshot", headers=self._headers)
                    except httpx.TransportError:
                        continue
                    assert answer.status_code in (200, 503), answer.text
                    if answer.status_code == 200:
                        document: Json = answer.json()
                        return document
        return None


@pytest_asyncio.fixture
async def planner(kube: KubeClient, devcluster: Cluster, product: None) -> Planner:
    """The extender, asked with its own account's token: it may read TrainingJobs."""
    secret = (await kube.get(SECRETS, "kube-synergy-scheduler-tls", NAMESPACE))["data"]
    context = ssl.create_default_context(cadata=base64.b64decode(secret["ca.crt"]).decode())
    context.check_hostname = False  # the certificate is for the Service, these are pods
    token = await run(devcluster, "kubectl", "-n", NAMESPACE, "create", "token", "kube-synergy-extender")
    return Planner(kube, context, token.strip())


async def test_who_loses_speed_when_spread_lies_so_only_on_gpus_that_nobody_wants_and_its_time_is_told_apart(
    kube: KubeClient, namespace: str, policy: Follow, nodes: list[str], planner: Planner
) -> None:
    await policy(policy="max-min-fairness", mechanism="tune", roundSeconds=ROUND_S, placementSensitive=True)
    scene, wide = Scene(kube, namespace), f"{namespace}/wide"
    async with Observer(kube) as observer:
        await scene.set(nodes)
        await scene.stays("wide", "Queued", run=0)
        assert (await scene.status("narrow-1"))["allocation"]["run"] == 1, "it wants its GPUs"

        await scene.end("narrow-1", "narrow-2")
        spread = await scene.reaches("wide", "Running")
        assert (spread["allocation"]["nodes"], spread["allocation"]["spread"]) == (2, True)
        since = parse_time(spread["service"]["runningSince"])
        for _ in range(2):
            had, lay_spread, now = await planner.received(wide)
            assert had == lay_spread == pytest.approx(now - since, abs=0.1)
            await kill(kube, "extender")
        await scene.stays("wide", "Running", run=1)
        had, lay_spread, now = await planner.received(wide)
        assert had == lay_spread == pytest.approx(now - since, abs=0.1)

        await scene.end("here")
        together = await scene.runs_again("wide")
        assert together["allocation"]["nodes"] == 1
        assert "spread" not in together["allocation"]
        books = together["service"]
        assert books["spreadSeconds"] == books["receivedSeconds"]
        counted, again = books["spreadSeconds"]["T4"], parse_time(books["runningSince"])
        assert now - since - 1 <= counted <= again - since + 1, "starts and ends are known to the second"

        await kill(kube, "extender")
        await scene.stays("wide", "Running", run=2)
        had, lay_spread, now = await planner.received(wide)
        assert lay_spread == counted, "once, however often it was read"
        assert had == pytest.approx(counted + now - again, abs=0.1)
        await scene.suspend("wide", True)
        closed = (await scene.reaches("wide", "Suspended"))["service"]
        assert closed["spreadSeconds"] == books["spreadSeconds"]
        assert closed["receivedSeconds"]["T4"] >= had - 1
        assert closed["attainedGPUSeconds"] == pytest.approx(6 * closed["receivedSeconds"]["T4"], abs=0.1)
    assert observer.broken == []


async def test_a_policy_that_does_not_see_placements_takes_others_gpus_for_a_spread_place_and_leaves_the_job_there(
    kube: KubeClient, namespace: str, policy: Follow, nodes: list[str], planner: Planner
) -> None:
    """The same jobs, the same speeds: who has had nothing yet has its turn, wherever its GPUs are."""
    await policy(policy="max-min-fairness", mechanism="tune", roundSeconds=ROUND_S, placementSensitive=False)
    scene = Scene(kube, namespace)
    async with Observer(kube) as observer:
        await scene.set(nodes)
        await scene.reaches("wide", "Running")
        await scene.end("narrow-1", "narrow-2")
        spread = (await scene.reaches("wide", "Running"))["allocation"]
        assert spread["nodes"] == 2
        assert "spread" not in spread
        await scene.end("here")
        await scene.stays("wide", "Running", spread["run"])
        had, lay_spread, _ = await planner.received(f"{namespace}/wide")
        assert (had > 0, lay_spread) == (True, 0.0)
        await scene.suspend("wide", True)
        assert (await scene.reaches("wide", "Suspended"))["service"].get("spreadSeconds") is None
    assert observer.broken == []
