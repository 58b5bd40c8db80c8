"""Jobs share GPUs under MPS on a real kubelet: who shares with whom is the plan's, told by the GPUs' UUIDs."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest
import pytest_asyncio

import synergy_devcluster
from support.on_cluster.jobs import logs, matrix, restricted_template, submit
from support.on_cluster.namespaces import alone_on
from support.waiting import eventually
from synergy_core.colocation.predictors.generic import EFFECTS
from synergy_core.model.usage import Usage
from synergy_devcluster import Options, gpus
from synergy_devcluster.gpu_plugin.shared import Preference
from synergy_devcluster.real_nodes import REAL_NODE
from synergy_kube import KubeClient
from synergy_kube.resources import GPU_POOLS, PERSISTENT_VOLUME_CLAIMS, SCHEDULING_POLICIES, TRAINING_JOBS

pytestmark = pytest.mark.e2e

Json = dict[str, Any]
Offer = Callable[..., Awaitable[None]]
POOL = "shared-a100"
GIB = 1 << 30
TIMES = int(os.environ.get("PAIRINGS", "1"))
LIGHT, HEAVY = Usage(compute=0.5, bandwidth=0.2), Usage(compute=0.95, bandwidth=0.2)
"""What half the jobs do to a GPU, and the others. The half of the threads that each client has is enough for a light
one, which keeps 0.83 of its speed beside a heavy one. That has 0.53 in any case, alone too."""
TRAIN = """
import sys, synergy_job
sys.path.insert(0, "/examples")
from fake_device import FakeDevice
from fake_mps import Client
client = Client(float(sys.argv[1]), 8192)
device = FakeDevice(0.1, client)
for _ in synergy_job.iterate(range(10**6), save=lambda step: None, load=lambda: None):
    device.launch()
client.close()
"""
CRASH = """
import os, pathlib, sys, time, synergy_job
sys.path.insert(0, "/examples")
from fake_device import FakeDevice
from fake_mps import Client, DeviceError
folder, name = pathlib.Path("/checkpoints"), os.environ["SYNERGY_JOB"]
crashed, kept = folder / "crashed", synergy_job.Checkpoint(folder / name)
client = Client(0.95 if crashed.exists() else 0.3, 8192)
device = FakeDevice(0.1, client)
step, partner = kept.read() or 0, synergy_job.Checkpoint(folder / "a")
seen = partner.read() or 0
print("begins at", step, flush=True)
try:
    for _ in synergy_job.iterate(range(10**6), save=kept.write, load=lambda: step or None, checkpoint_every_steps=10):
        device.launch()
        if name == "b" and not crashed.exists() and (partner.read() or 0) >= seen + 10:
            crashed.touch()
            client.fault()
except DeviceError:
    time.sleep(0 if name == "b" else 2)  # who is taken down hears of it a little later
    raise
"""
"""Two who say that they compute 0.3 of the time. `b` brings their GPU down once, when it has seen `a` train
beside it; afterwards each computes 0.95, and they keep 0.64 of their speed."""


@pytest_asyncio.fixture
async def offer(
    devcluster: synergy_devcluster.Cluster, kube: KubeClient, policy: Callable[..., Awaitable[None]]
) -> AsyncIterator[Offer]:
    """Four GPUs for two clients each on the real node, of which the plugin prefers as told; what was there before is
    put back after the test."""
    await alone_on(kube, REAL_NODE)
    await policy(policy="fifo", colocation="auto", roundSeconds=10)
    spare = [gpu.uuid for gpu in gpus.listed(devcluster) if not gpu.healthy]

    async def shared(preference: Preference, *, count: int = 4) -> None:
        for uuid in spare:
            gpus.set_health(devcluster, uuid, healthy=True)
        gpus.offer(devcluster, Options(gpus=count, gpu_replicas=2, gpu_preference=preference))
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
        """A job that needs 8 GiB of a GPU's 40."""
        compute = _kind(name).compute
        usage = {"gpuType": "A100", "compute": compute, "bandwidth": 0.2, "memory": "8Gi"}
        usual = {
            "gpus": 1,
            "steps": 10**6,
            "gpuTypes": ["A100"],
            "sharing": {"allowed": True, "usage": [usage]},
            "resources": {"max": {"cpu": "100m", "memory": "128Mi"}},
            "profile": {"mode": "Provided", "matrices": [matrix("A100", {50: 8.0, 100: 10.0}, 64 << 20)]},
            "template": restricted_template(["python3", "-c", TRAIN, str(compute)]),
        }
        await submit(self.kube, self.namespace, name, **usual | spec)

    async def status(self, name: str) -> Json:
        """The status of one of them, empty as long as nobody has looked at it."""
        return dict((await self.kube.get(TRAINING_JOBS, name, self.namespace)).get("status") or {})

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


def _kind(name: str) -> Usage:
    return LIGHT if name in "abcd" else HEAVY


def _speed(status: Json) -> float:
    return float(status["progress"]["stepsPerSecond"])


def planned(statuses: Mapping[str, Json]) -> set[frozenset[str]]:
    """Who shall have a GPU together."""
    found = set()
    for name, status in statuses.items():
        asked = status["allocation"]["sharedGpu"].get("asked", [])
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
    seen = all(one.get("seen") == one.get("asked", []) for one in shared)
    return len(statuses) == 8 and seen and sorted(map(len, planned(statuses))) == [2, 2, 2, 2]


def shown(status: Json) -> tuple[str, str]:
    """GPUs and partners as `kubectl get -o wide` shows them."""
    return status["summary"]["gpus"], status["summary"]["partners"]


def _partner(status: Json) -> str:
    """The only partner's name, without the namespace that both are in."""
    (partner,) = status["allocation"]["sharedGpu"]["asked"]
    return str(partner).partition("/")[2]


@pytest.mark.timeout(300 + 120 * TIMES)
async def test_eight_jobs_come_to_be_in_the_four_planned_pairs_and_who_is_left_gets_a_partner_or_the_gpu(
    offer: Offer, kube: KubeClient, namespace: str
) -> None:
    await offer("packed")
    jobs = Jobs(kube, namespace)
    for _ in range(TIMES):
        for name in "abcdefgh":
            await jobs.submit(name)
        statuses = await jobs.until("eight jobs to run in four planned pairs", paired)
        assert by_uuid(statuses) == planned(statuses)
        before = planned(statuses)
        assert all(shown(status) == ("1/2 A100", _partner(status)) for status in statuses.values())
        assert all(sorted(map(_kind, pair), key=lambda one: one.compute) == [LIGHT, HEAVY] for pair in before)

        # a heavy one has the speed that its threads let it have, and the plan knows
        leaver = max(statuses)
        said = statuses[leaver]["allocation"]["stepsPerSecond"]
        assert said == pytest.approx(10 * 0.5 / HEAVY.compute)
        await jobs.until(
            f"{leaver} to tell its speed",
            lambda now, one=leaver, said=said: one in now and 3.0 < _speed(now[one]) < 1.1 * said,
        )

        # one leaves and another comes: the one who was left gets it as partner, the others stay as they are
        (lone,) = next(pair for pair in before if leaver in pair) - {leaver}
        await kube.delete(TRAINING_JOBS, leaver, namespace)
        await jobs.submit("i")
        statuses = await jobs.until("the newcomer to be the partner", lambda now: paired(now) and "i" in now)
        assert by_uuid(statuses) == planned(statuses) == before - {frozenset({leaver, lone})} | {frozenset({"i", lone})}

        # partners slow each other as the model says
        most = 10 * (1 + EFFECTS.fractions([LIGHT, HEAVY])[0]) / 2
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
        for name in statuses:
            await kube.delete(TRAINING_JOBS, name, namespace)


def crashing() -> Json:
    """What the two jobs of `CRASH` have beside the usual."""
    usage = {"gpuType": "A100", "compute": 0.3, "bandwidth": 0.2, "memory": "8Gi"}
    claim = {"name": "checkpoints", "persistentVolumeClaim": {"claimName": "checkpoints"}}
    template = restricted_template(["python3", "-c", CRASH], volumes=[claim])
    template["spec"]["containers"][0]["volumeMounts"] = [{"name": "checkpoints", "mountPath": "/checkpoints"}]
    sharing = {"allowed": True, "minThroughputFraction": 0.75, "usage": [usage]}
    return {"sharing": sharing, "template": template}


@pytest.mark.long
@pytest.mark.timeout(400)
async def test_who_is_taken_down_by_its_partner_goes_on_and_a_pair_that_does_worse_than_predicted_is_parted(
    offer: Offer, devcluster: synergy_devcluster.Cluster, kube: KubeClient, namespace: str
) -> None:
    await offer("packed", count=1)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Mi"}}}
    await kube.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "checkpoints"}, "spec": claim}, namespace)
    jobs = Jobs(kube, namespace)
    for name in "ab":
        await jobs.submit(name, **crashing())

    async def crashed() -> tuple[Json, Json] | None:
        taken_down, culprit = [(await jobs.status(name)).get("service") or {} for name in "ab"]
        told = str((taken_down.get("last") or {}).get("reason")).startswith("PartnerFailed")
        return (taken_down, culprit) if told and culprit.get("failures") else None

    taken_down, culprit = await eventually(crashed, seconds=120, what="b to bring a down")
    assert (taken_down["last"]["outcome"], taken_down.get("failures", 0), culprit["failures"]) == ("Evicted", 0, 1)

    def together_again(now: dict[str, Json]) -> bool:
        return planned(now) == by_uuid(now) == {frozenset("ab")}

    statuses = await jobs.until("both to run on one GPU again", together_again)
    run = statuses["a"]["allocation"]["run"]
    assert run > taken_down["last"]["run"]
    begun = logs(devcluster, namespace, f"a-{run}-0").split()[2]
    assert int(begun) >= 10, "it goes on from its checkpoint"

    # what each was expected to keep beside the other is not what it keeps
    def alone(now: dict[str, Json]) -> bool:
        return (
            list(now) == ["a"]
            and "asked" not in now["a"]["allocation"]["sharedGpu"]
            and _measured(now["a"]) is not None
        )

    statuses = await jobs.until("the first to have the GPU alone", alone)
    measured = _measured(statuses["a"])
    assert measured is not None
    assert measured["expected"] > 0.95
    assert measured["fraction"] < 0.75
    waits = await jobs.status("b")
    assert "of its speed, 99% were expected" in waits["allocation"]["reason"]

    # and they are not put together again
    since = await _planned_round(kube)

    async def later() -> bool:
        return await _planned_round(kube) > since

    await eventually(later, seconds=120, what="one more round")
    assert (await jobs.status("b"))["phase"] == "Queued"


async def _planned_round(kube: KubeClient) -> int:
    """The newest round that the policy's status names."""
    policy = await kube.get(SCHEDULING_POLICIES, "default")
    return int(policy["status"]["inForce"].get("round", 0))


def _measured(status: Json) -> Json | None:
    """What the job keeps beside its only partner."""
    found = status["progress"].get("shared") or [None]
    return dict(found[0]) if found[0] else None


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


@pytest.mark.timeout(900)
async def test_a_new_job_is_measured_beside_a_reference_before_it_trains(
    offer: Offer, policy: Callable[..., Awaitable[None]], kube: KubeClient, namespace: str
) -> None:
    await offer("packed", count=2)
    profiling = {"referencePairs": 1, "referencePairSeconds": 40, "maxPoints": 2, "maxRepeats": 0}
    await policy(policy="fifo", colocation="auto", roundSeconds=10, profiling=profiling)
    jobs = Jobs(kube, namespace)
    heavy = {"gpuType": "A100", "compute": HEAVY.compute, "bandwidth": 0.2, "memory": "8Gi", "model": "Heavy"}
    await jobs.submit("e", suspend=True, sharing={"allowed": True, "reference": True, "usage": [heavy]})
    await jobs.submit("a", profile={"mode": "Auto", "steps": 10, "warmupSteps": 2, "cpuStep": "50m"})

    seen: list[str] = []

    async def trains() -> Json | None:
        status = await jobs.status("a")
        told = {one["type"]: one["reason"] for one in status.get("conditions", [])}.get("Profiled", "")
        if told and told not in seen:
            seen.append(told)
        assert status.get("phase") != "Failed", status
        return status if status.get("phase") == "Running" else None

    try:
        status = await eventually(trains, seconds=400, what="the new job to train")
    except AssertionError as error:
        raise AssertionError(f"{error}: {seen}, {await jobs.status('a')}") from None
    told = [one for one in seen if "Reference" in one]
    assert told[-1] == "ReferencePairMeasuring", seen
    assert set(told[:-1]) <= {"ReferencePairWaiting"}, "it may wait for a moment first"
    (pair,) = status["profile"]["pairs"]
    assert (pair["model"], pair["reference"], pair.get("problem")) == ("Heavy", "e", None), pair
    light_keeps = EFFECTS.fractions([LIGHT, HEAVY])[0]
    assert pair["kept"] == pytest.approx(light_keeps, abs=0.1)
    assert pair["referenceKept"] == pytest.approx(0.5 / HEAVY.compute, abs=0.1), "what its threads are enough for"
    assert pair["seconds"] >= 10
    assert (await jobs.status("e"))["phase"] == "Suspended"
