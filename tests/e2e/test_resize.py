"""Running jobs change CPU and memory in place, on a real kubelet, without a restart and without losing a step."""

import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

import synergy_devcluster
from support.on_cluster.jobs import logs, reaches, restricted_template, submit
from support.on_cluster.namespaces import alone_on
from support.on_cluster.observer import Observer, number, pod_request
from support.programs import run
from support.waiting import eventually
from synergy_api.timestamps import parse_time
from synergy_devcluster import gpus
from synergy_devcluster.node.node import PAUSE_IMAGE
from synergy_devcluster.real_nodes import REAL_NODE
from synergy_kube import KubeClient
from synergy_kube.resources import NODES, PODS, TRAINING_JOBS

pytestmark = pytest.mark.e2e

Json = dict[str, Any]
MIB = 1 << 20
CPU, MEMORY = 1200, 900 * MIB
"""What is left of the node for jobs: 600m for each of two, 400m for each of three."""
TRAIN = """
import json, time, synergy_job
held = bytearray({held})
held[::4096] = b"x" * len(held[::4096])
for step, _ in enumerate(synergy_job.iterate(range(10**6), save=lambda step: None, load=lambda: None), 1):
    print(json.dumps({{"step": step, "at": time.time(), "cpus": synergy_job.cpus()}}), flush=True)
    time.sleep(0.05)
"""
QUOTA = "cat /sys/fs/cgroup/cpu.max 2>/dev/null || cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us"


class Jobs:
    """The jobs of a namespace on the real node, and what their workers really have."""

    def __init__(self, kube: KubeClient, namespace: str, cluster: synergy_devcluster.Cluster) -> None:
        self.kube = kube
        self.namespace = namespace
        self.cluster = cluster

    async def submit(self, name: str, *, steps: int, most: int, memory: dict[int, float], held: int = 1) -> None:
        """A job whose speed grows with its CPU up to `most` milli-CPU, and with its memory as `memory` (MiB: factor)
        says. It keeps `held` MiB in use."""
        curve = {100: 1.0, most: most / 100}
        matrix = {
            "gpuType": "A100",
            "cpuMillis": list(curve),
            "memoryBytes": [mib * MIB for mib in memory],
            "stepsPerSecond": [[speed * factor for factor in memory.values()] for speed in curve.values()],
        }
        await submit(
            self.kube,
            self.namespace,
            name,
            gpus=1,
            steps=steps,
            gpuTypes=["A100"],
            profile={"mode": "Provided", "matrices": [matrix]},
            template=restricted_template(["python3", "-c", TRAIN.format(held=held * MIB)]),
        )

    async def job(self, name: str) -> Json:
        """The job."""
        return await self.kube.get(TRAINING_JOBS, name, self.namespace)

    async def container(self, name: str) -> Json:
        """The status of the first run's container."""
        pod = await self.kube.get(PODS, f"{name}-1-0", self.namespace)
        return dict(pod["status"]["containerStatuses"][0])

    async def until(self, what: str, holds: Callable[[Json, list[Json]], Any]) -> None:
        """Wait until it is so of the statuses of all jobs by name, and of the worker pods."""
        last: list[Any] = []

        async def there() -> bool:
            jobs = (await self.kube.list(TRAINING_JOBS, self.namespace))["items"]
            pods = (await self.kube.list(PODS, self.namespace, label_selector="kube-synergy.dev/job"))["items"]
            last[:] = [{job["metadata"]["name"]: job.get("status") or {} for job in jobs}, pods]
            return bool(holds(*last))

        try:
            await eventually(there, seconds=90, what=what, every=0.1)
        except AssertionError as error:
            raise AssertionError(f"{error}: {last[0]}, {[pod['status'] for pod in last[1]]}") from None

    async def has(self, name: str, resource: str, amount: str) -> Json:
        """The container's status once the kubelet says that its limit is so much."""

        def so_much(_: Json, pods: list[Json]) -> bool:
            own = [pod for pod in pods if pod["metadata"]["labels"]["kube-synergy.dev/job"] == name]
            statuses = [status for pod in own for status in pod["status"].get("containerStatuses") or []]
            limits = [(status.get("resources") or {}).get("limits", {}).get(resource, "0") for status in statuses]
            return [number(limit) for limit in limits] == [number(amount)]

        await self.until(f"{name} to have {amount} of {resource}", so_much)
        return await self.container(name)

    async def quota(self, name: str) -> int:
        """CPU quota of the container's cgroup in microseconds, as the kernel has it."""
        pod = f"{name}-1-0"
        told = await run(self.cluster, "kubectl", "-n", self.namespace, "exec", pod, "--", "sh", "-c", QUOTA)
        return int(told.split()[0])

    def log(self, name: str) -> list[Json]:
        """What the first run printed at each step."""
        return [json.loads(line) for line in logs(self.cluster, self.namespace, f"{name}-1-0").splitlines()]


@pytest_asyncio.fixture
async def jobs(
    kube: KubeClient, namespace: str, pools: None, devcluster: synergy_devcluster.Cluster
) -> AsyncIterator[Jobs]:
    """Jobs on a node that has just so much left for them: a pod of somebody else holds the rest."""
    node = await kube.get(NODES, REAL_NODE)
    alive = await alone_on(kube, REAL_NODE, but=namespace)
    free = {
        name: number(node["status"]["allocatable"][name]) - sum(pod_request(pod, name) for pod in alive)
        for name in ("cpu", "memory")
    }
    rest = {"cpu": f"{round(free['cpu'] * 1000) - CPU}m", "memory": str(int(free["memory"]) - MEMORY)}
    container = {"name": "rest", "image": PAUSE_IMAGE, "resources": {"requests": rest}}
    spec = {"nodeName": REAL_NODE, "terminationGracePeriodSeconds": 0, "containers": [container]}
    await kube.create(PODS, {"metadata": {"name": "rest"}, "spec": spec}, namespace)
    yield Jobs(kube, namespace, devcluster)


@pytest_asyncio.fixture
async def third_gpu(kube: KubeClient, devcluster: synergy_devcluster.Cluster) -> AsyncIterator[None]:
    """The real node's spare GPU is healthy meanwhile."""

    async def allocatable(count: int) -> None:
        async def there() -> bool:
            node = await kube.get(NODES, REAL_NODE)
            return bool(node["status"]["allocatable"]["nvidia.com/gpu"] == str(count))

        await eventually(there, seconds=60, what=f"{count} GPUs")

    uuids = [gpu.uuid for gpu in gpus.listed(devcluster)]
    assert len(uuids) > 2, "bring the devcluster up with --gpus 3"
    gpus.set_health(devcluster, uuids[2], healthy=True)
    await allocatable(3)
    yield
    gpus.set_health(devcluster, uuids[2], healthy=False)
    await allocatable(2)


def _trained(found: Json, _: list[Json]) -> bool:
    return all(((found.get(name) or {}).get("progress") or {}).get("steps", 0) >= 3 for name in ("one", "two"))


@pytest.mark.timeout(300)
async def test_two_jobs_give_cpu_to_a_third_and_get_it_back(
    jobs: Jobs, third_gpu: None, policy: Callable[..., Awaitable[None]]
) -> None:
    await policy(policy="fifo", mechanism="tune", roundSeconds=5)
    async with Observer(jobs.kube) as watching:
        for name in ("one", "two"):
            await jobs.submit(name, steps=100_000, most=600, memory={128: 1.0})
        before = {name: await jobs.has(name, "cpu", "600m") for name in ("one", "two")}
        await jobs.until("both to have made steps with it", _trained)
        await jobs.submit("three", steps=60, most=600, memory={128: 1.0})
        for name in ("one", "two", "three"):
            await jobs.has(name, "cpu", "400m")
        assert [await jobs.quota(name) for name in ("one", "two")] == [40_000, 40_000]
        third = await reaches(jobs.kube, jobs.namespace, "three", "Succeeded", seconds=60)
        after = {name: await jobs.has(name, "cpu", "600m") for name in ("one", "two")}
        assert [await jobs.quota(name) for name in ("one", "two")] == [60_000, 60_000]
    assert watching.broken == []
    came = parse_time(third["metadata"]["creationTimestamp"])
    went = parse_time(third["status"]["completionTime"])
    for name in ("one", "two"):
        assert after[name]["containerID"] == before[name]["containerID"]
        assert after[name]["restartCount"] == 0
        assert (await jobs.job(name))["status"]["service"]["run"] == 1
        told = jobs.log(name)
        assert [line["step"] for line in told] == list(range(1, len(told) + 1))
        sizes = [(cpus, next(same)["at"]) for cpus, same in itertools.groupby(told, key=lambda line: line["cpus"])]
        assert [cpus for cpus, _ in sizes][-3:] == [0.6, 0.4, 0.6]
        print(f"{name}: 0.4 CPUs {sizes[-2][1] - came:.2f} s after the third came,", end=" ")
        print(f"0.6 again {sizes[-1][1] - went:.2f} s after it went, at {sizes[-1][1] % 5:.2f} s of a round")


@pytest.mark.timeout(300)
async def test_memory_in_use_is_left_and_the_plan_goes_by_it(
    jobs: Jobs, policy: Callable[..., Awaitable[None]]
) -> None:
    await policy(policy="fifo", mechanism="tune", roundSeconds=5)
    sensitive = {100: 1.0, 700: 2.0}
    async with Observer(jobs.kube) as watching:
        await jobs.submit("holder", steps=100_000, most=900, memory=sensitive, held=550)
        before = await jobs.has("holder", "memory", str(700 * MIB))
        await jobs.until(
            "the holder to have its memory in use",
            lambda found, _: (found["holder"].get("progress") or {}).get("steps"),
        )
        await jobs.submit("other", steps=20, most=900, memory=sensitive)

        def learned(found: Json, _: list[Json]) -> bool:
            status, allocation = found["holder"], found["holder"]["allocation"]
            known = (status.get("sizeLimits") or {}).get("minMemoryBytes") == 700 * MIB
            return known and allocation["workers"][0]["memoryBytes"] == 700 * MIB and not allocation.get("planned")

        await jobs.until("the plan to know of the memory in use", learned)
        conditions = (await jobs.job("holder"))["status"]["conditions"]
        told = next(condition for condition in conditions if condition["type"] == "ResourcesAsPlanned")
        assert (told["status"], told["reason"]) == ("False", "MemoryInUse")
        assert "below current usage" in told["message"]
        await jobs.until(
            "the other to be told that it waits for memory",
            lambda found, _: (found["other"].get("queue") or {}).get("reason") == "NoFreeCPUOrMemory",
        )
        after = await jobs.has("holder", "memory", str(700 * MIB))
        assert (after["containerID"], after["restartCount"]) == (before["containerID"], 0)
        steps = [line["step"] for line in jobs.log("holder")]
        assert steps == list(range(1, len(steps) + 1))
        await jobs.kube.delete(TRAINING_JOBS, "holder", jobs.namespace)
        await reaches(jobs.kube, jobs.namespace, "other", "Succeeded", seconds=90)
    assert watching.broken == []
