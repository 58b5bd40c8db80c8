"""Jobs share GPUs under MPS on a real kubelet: who shares with whom is the plan's, told by the GPUs' UUIDs."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest
import pytest_asyncio

import synergy_devcluster
from support.jobs import matrix, restricted_template, submit
from support.namespaces import alone_on
from support.waiting import eventually
from synergy_core.colocation.generic import EFFECTS
from synergy_core.colocation.usage import Usage
from synergy_devcluster import Options, gpus
from synergy_devcluster.gpu_plugin.shared import Preference
from synergy_devcluster.real_nodes import REAL_NODE
from synergy_kube import KubeClient
from synergy_kube.resources import GPU_POOLS, TRAINING_JOBS

pytestmark = pytest.mark.e2e

Json = dict[str, Any]
Offer = Callable[[Preference], Awaitable[None]]
POOL = "shared-a100"
GIB = 1 << 30
TIMES = int(os.environ.get("PAIRINGS", "1"))
COMPUTE = 0.7
"""Part of the time that each job computes: a pair keeps 0.82 of its speed."""
USAGE = Usage(compute=COMPUTE, bandwidth=0.2)
TRAIN = f"""
import sys, synergy_job
sys.path.insert(0, "/examples")
from fake_device import FakeDevice
from fake_mps import Client
client = Client({COMPUTE}, 8192)
device = FakeDevice(0.1, client)
for _ in synergy_job.iterate(range(10**6), save=lambda step: None, load=lambda: None):
    device.launch()
client.close()
"""


@pytest_asyncio.fixture
async def offer(
    devcluster: synergy_devcluster.Cluster, kube: KubeClient, policy: Callable[..., Awaitable[None]]
) -> AsyncIterator[Offer]:
    """Four GPUs for two clients each on the real node, of which the plugin prefers as told; what was there before is
    put back after the test."""
    await alone_on(kube, REAL_NODE)
    await policy(policy="fifo", colocation="auto", roundSeconds=10)
    spare = [gpu.uuid for gpu in gpus.listed(devcluster) if not gpu.healthy]

    async def shared(preference: Preference) -> None:
        for uuid in spare:
            gpus.set_health(devcluster, uuid, healthy=True)
        gpus.offer(devcluster, Options(gpus=4, gpu_replicas=2, gpu_preference=preference))
        sharing = {"mode": "MPS", "replicas": 2, "preference": preference.capitalize()}
        spec = {"gpuType": "A100", "nodeSelector": {"nvidia.com/mps.capable": "true"}, "sharing": sharing}
        await kube.apply(GPU_POOLS, POOL, {"spec": spec}, manager="tests")

    yield shared
    await kube.delete(GPU_POOLS, POOL)
    for uuid in spare:
        gpus.set_health(devcluster, uuid, healthy=False)
    gpus.offer(devcluster, devcluster.options)


class Jobs:
    """The jobs of a namespace, all on the shared node."""

    def __init__(self, kube: KubeClient, namespace: str) -> None:
        self.kube = kube
        self.namespace = namespace

    async def submit(self, name: str, **spec: Any) -> None:
        """A job that computes most of the time and needs 8 GiB of a GPU's 40."""
        usage = {"gpuType": "A100", "compute": COMPUTE, "bandwidth": 0.2, "memory": "8Gi"}
        await submit(
            self.kube,
            self.namespace,
            name,
            gpus=1,
            steps=10**6,
            gpuTypes=["A100"],
            sharing={"allowed": True, "usage": [usage]},
            resources={"max": {"cpu": "100m", "memory": "128Mi"}},
            profile={"mode": "Provided", "matrices": [matrix("A100", {50: 8.0, 100: 10.0}, 64 << 20)]},
            template=restricted_template(["python3", "-c", TRAIN]),
            **spec,
        )

    async def running(self) -> dict[str, Json]:
        """The status of every job that has told of its GPU in its newest run, by name."""
        items = (await self.kube.list(TRAINING_JOBS, self.namespace))["items"]
        found = {}
        for item in items:
            status = item.get("status") or {}
            allocation, progress = status.get("allocation") or {}, status.get("progress") or {}
            told = progress.get("run") == allocation.get("run") and progress.get("gpuUUIDs")
            if status.get("phase") == "Running" and allocation.get("state") == "Granted" and told:
                found[item["metadata"]["name"]] = status
        return found

    async def until(self, what: str, holds: Callable[[dict[str, Json]], bool]) -> dict[str, Json]:
        """The statuses of those who run once it is so of them."""
        last: dict[str, Json] = {}

        async def so() -> dict[str, Json] | None:
            last.clear()
            last.update(await self.running())
            return dict(last) if holds(last) else None

        try:
            return await eventually(so, seconds=120, what=what)
        except AssertionError as error:
            items = (await self.kube.list(TRAINING_JOBS, self.namespace))["items"]
            told = {item["metadata"]["name"]: _in_short(item.get("status") or {}) for item in items}
            raise AssertionError(f"{error}; the jobs: {told}") from None


def _in_short(status: Json) -> Json:
    """What tells why jobs are not where they shall be."""
    allocation, progress = status.get("allocation") or {}, status.get("progress") or {}
    service, queue = status.get("service") or {}, status.get("queue") or {}
    return {
        "phase": status.get("phase"),
        **{name: allocation.get(name) for name in ("run", "state", "admitted", "sharedGpu", "reason")},
        "gpus": progress.get("gpuUUIDs"),
        "last": service.get("last"),
        "waits": queue.get("message"),
    }


def _speed(status: Json) -> float:
    return float(status["progress"]["stepsPerSecond"])


def planned(statuses: Mapping[str, Json]) -> set[frozenset[str]]:
    """Who shall have a GPU together."""
    found = set()
    for name, status in statuses.items():
        asked = status["allocation"]["sharedGpu"]["asked"]
        found.add(frozenset({name, *(partner.partition("/")[2] for partner in asked)}))
    return found


def by_uuid(statuses: Mapping[str, Json]) -> set[frozenset[str]]:
    """Who has a GPU together, as the containers found it."""
    on: dict[str, set[str]] = {}
    for name, status in statuses.items():
        (uuid,) = status["progress"]["gpuUUIDs"]
        on.setdefault(uuid, set()).add(name)
    return {frozenset(names) for names in on.values()}


def paired(statuses: Mapping[str, Json]) -> bool:
    """Whether all eight run in four pairs by plan, and each job was seen with its partner."""
    shared = [status["allocation"]["sharedGpu"] for status in statuses.values()]
    seen = all(one.get("seen") == one["asked"] for one in shared)
    return len(statuses) == 8 and seen and sorted(map(len, planned(statuses))) == [2, 2, 2, 2]


@pytest.mark.timeout(300 + 120 * TIMES)
async def test_eight_jobs_come_to_be_in_the_four_planned_pairs_and_who_is_left_gets_a_partner_or_the_gpu(
    offer: Offer, kube: KubeClient, namespace: str
) -> None:
    await offer("packed")
    jobs = Jobs(kube, namespace)
    for name in "abcdefgh":
        await jobs.submit(name)
    for _ in range(TIMES):
        statuses = await jobs.until("eight jobs to run in four planned pairs", paired)
        assert by_uuid(statuses) == planned(statuses)
        before = planned(statuses)

        # one leaves and another comes: the one who was left gets it as partner, the others stay as they are
        leaver = min(statuses)
        (lone,) = next(pair for pair in before if leaver in pair) - {leaver}
        await kube.delete(TRAINING_JOBS, leaver, namespace)
        await jobs.submit("i")
        statuses = await jobs.until("the newcomer to be the partner", lambda now: paired(now) and "i" in now)
        assert by_uuid(statuses) == planned(statuses) == before - {frozenset({leaver, lone})} | {frozenset({"i", lone})}

        # partners slow each other as the model says
        most = 10 * (1 + EFFECTS.fractions([USAGE, USAGE])[0]) / 2
        statuses = await jobs.until(
            f"{lone} to be slowed", lambda now, lone=lone, most=most: lone in now and _speed(now[lone]) < most
        )
        slowed = _speed(statuses[lone])

        # one leaves and nobody comes: the one who was left gets all of the GPU
        await kube.delete(TRAINING_JOBS, "i", namespace)

        def whole(now: dict[str, Json], lone: str = lone) -> bool:
            return len(now) == 7 and now[lone]["allocation"]["workers"][0]["devices"] == 2

        statuses = await jobs.until(f"{lone} to have a GPU alone", whole)
        assert by_uuid(statuses) == planned(statuses) >= {frozenset({lone})}
        await jobs.until(
            f"{lone} to be as fast as alone", lambda now, lone=lone, slowed=slowed: _speed(now[lone]) > 1.08 * slowed
        )
        await kube.delete(TRAINING_JOBS, lone, namespace)
        for name in (leaver, lone):
            await jobs.submit(name)


async def test_where_the_plugin_distributes_nobody_shares_and_each_has_a_gpu_alone(
    offer: Offer, kube: KubeClient, namespace: str
) -> None:
    await offer("distributed")
    jobs = Jobs(kube, namespace)
    for name in "abcde":
        await jobs.submit(name)

    def settled(now: dict[str, Json]) -> bool:
        return len(now) == 4 and all(one["allocation"]["sharedGpu"].get("seen") == [] for one in now.values())

    statuses = await jobs.until("four jobs to run", settled)
    assert by_uuid(statuses) == planned(statuses) == {frozenset({name}) for name in statuses}
