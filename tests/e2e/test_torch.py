"""PyTorch on a real kubelet: two pods average their gradients by gloo, and whatever happens to them changes nothing."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import synergy_devcluster
from support.on_cluster.jobs import matrix, reaches, restricted_template, submit
from support.on_cluster.namespaces import alone_on
from support.on_cluster.observer import number, pod_request
from support.programs import run
from support.waiting import eventually
from synergy_devcluster.node.node import PAUSE_IMAGE
from synergy_devcluster.real_nodes import REAL_NODE
from synergy_kube import KubeClient
from synergy_kube.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS, TRAINING_JOBS

pytestmark = pytest.mark.e2e

Json = dict[str, Any]
IMAGE = "localhost/kube-synergy-examples-torch:dev"
MIB = 1 << 20
MEMORY = 512 * MIB
STEPS = 400


class Pair:
    """A job of two pods, and what each of them prints in each of its runs."""

    def __init__(self, kube: KubeClient, namespace: str, name: str, cluster: synergy_devcluster.Cluster) -> None:
        self.kube, self.namespace, self.name, self._cluster = kube, namespace, name, cluster
        self._logs: dict[tuple[int, int], asyncio.Task[str]] = {}

    async def submit(self, *options: str) -> None:
        claim = {"name": "checkpoints", "persistentVolumeClaim": {"claimName": "checkpoints"}}
        script = ["python3", "/examples/torch_training.py", "--checkpoint", f"/checkpoints/{self.name}"]
        template = restricted_template([*script, "--steps", str(STEPS), "--log-every", "1", *options], volumes=[claim])
        container = template["spec"]["containers"][0]
        container["image"] = IMAGE
        container["volumeMounts"] = [{"name": "checkpoints", "mountPath": "/checkpoints"}]
        template["spec"]["securityContext"]["fsGroup"] = 65532
        curve = {200: 2.0, 400: 4.0, 600: 6.0, 800: 8.0, 1000: 10.0}
        await submit(
            self.kube,
            self.namespace,
            self.name,
            gpus=2,
            gpusPerWorker=1,
            steps=STEPS,
            gpuTypes=["A100"],
            profile={"mode": "Provided", "matrices": [matrix("A100", curve, 2 * MEMORY)]},
            template=template,
        )

    async def job(self) -> Json:
        return await self.kube.get(TRAINING_JOBS, self.name, self.namespace)

    async def trains(self, run: int, steps: int = 0) -> None:
        """Wait until the run has come to more than `steps`, and begin to keep what its pods print."""

        async def there() -> bool:
            status = (await self.job()).get("status") or {}
            progress = status.get("progress") or {}
            return progress.get("run") == run and progress.get("steps", 0) > steps

        async def running() -> bool:
            status = (await self.job()).get("status") or {}
            return bool(status.get("phase") == "Running" and status["allocation"]["run"] == run)

        await eventually(running, seconds=60, what=f"run {run} of {self.name}")
        for rank in (0, 1):
            if (run, rank) not in self._logs:
                self._logs[run, rank] = asyncio.create_task(self._log(run, rank))
        await eventually(there, seconds=60, what=f"run {run} of {self.name} to pass step {steps}")

    async def steps(self) -> int:
        return int(((await self.job())["status"].get("progress") or {}).get("steps", 0))

    async def suspended(self, value: bool) -> None:
        await self.kube.merge_patch(TRAINING_JOBS, self.name, {"spec": {"suspend": value}}, self.namespace)
        if value:
            await reaches(self.kube, self.namespace, self.name, "Suspended", seconds=60)

    async def suspended_for_a_moment(self, run: int) -> None:
        await self.suspended(True)
        await self.suspended(False)

    async def evicted(self, run: int) -> None:
        """As by somebody who empties the node: rank 1 alone is told to end."""
        pod = f"{self.name}-{run}-1"
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
        await self.kube.create_subresource(PODS, pod, "eviction", eviction, self.namespace)

    async def deleted(self, run: int) -> None:
        """The pod of rank 0 alone, with its grace period."""
        await self.kube.delete(PODS, f"{self.name}-{run}-0", self.namespace)

    async def container(self, rank: int, run: int) -> Json:
        pod = await self.kube.get(PODS, f"{self.name}-{run}-{rank}", self.namespace)
        return dict(pod["status"]["containerStatuses"][0])

    async def printed(self, rank: int) -> list[str]:
        """What the rank's pods printed, by run."""
        return [await self._logs[key] for key in sorted(self._logs) if key[1] == rank]

    async def _log(self, run_number: int, rank: int) -> str:
        pod = f"{self.name}-{run_number}-{rank}"
        return await run(self._cluster, "kubectl", "-n", self.namespace, "logs", "-f", pod)


def losses(output: str) -> dict[int, str]:
    """The loss of each step."""
    return {int(step): loss for step, loss in re.findall(r"step (\d+) loss (\S+)", output)}


def weights(output: str) -> str:
    return re.findall(rf"done after step {STEPS}, weights (\w{{16}})", output)[0]


async def _rest(kube: KubeClient, namespace: str, cpu_millis: int) -> None:
    """A pod that leaves so much CPU of the node to jobs."""
    node = await kube.get(NODES, REAL_NODE)
    alive = await alone_on(kube, REAL_NODE, but=namespace)
    free = number(node["status"]["allocatable"]["cpu"]) - sum(pod_request(pod, "cpu") for pod in alive)
    requests = {"cpu": f"{round(free * 1000) - cpu_millis}m"}
    container = {"name": "rest", "image": PAUSE_IMAGE, "resources": {"requests": requests}}
    spec = {"nodeName": REAL_NODE, "terminationGracePeriodSeconds": 0, "containers": [container]}
    await kube.create(PODS, {"metadata": {"name": "rest"}, "spec": spec}, namespace)


@pytest.mark.long
@pytest.mark.timeout(420)
async def test_a_job_that_is_retuned_preempted_and_killed_ends_as_one_that_was_left_alone(
    kube: KubeClient,
    namespace: str,
    pools: None,
    devcluster: synergy_devcluster.Cluster,
    policy: Callable[..., Awaitable[None]],
) -> None:
    await policy(policy="fifo", mechanism="tune", roundSeconds=5)
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "100Mi"}}}
    body = {"metadata": {"name": "checkpoints"}, "spec": claim}
    await kube.create(PERSISTENT_VOLUME_CLAIMS, body, namespace)
    alone = Pair(kube, namespace, "alone", devcluster)
    await alone.submit()
    await alone.trains(1)
    await reaches(kube, namespace, "alone", "Succeeded", seconds=90)
    told = [(await alone.printed(rank))[0] for rank in (0, 1)]
    assert [sorted(losses(one)) for one in told] == [list(range(1, STEPS + 1))] * 2
    assert weights(told[0]) == weights(told[1])

    await _rest(kube, namespace, 600)
    pair = Pair(kube, namespace, "pair", devcluster)
    await pair.submit("--step-ms", "120", "--save-every", "20", "--workers", "1")
    await pair.trains(1, steps=3)
    shared = await run(
        devcluster, "kubectl", "-n", namespace, "exec", "pair-1-0", "--", "sh", "-c", "df -k /dev/shm | tail -1"
    )
    assert int(shared.split()[1]) * 1024 == MEMORY // 2
    await _is_retuned_in_place(pair)
    stops = [pair.suspended_for_a_moment, pair.evicted, pair.deleted, pair.evicted, pair.suspended_for_a_moment]
    for number_of_run, stop in enumerate(stops, start=1):
        await stop(number_of_run)
        await pair.trains(number_of_run + 1, steps=await pair.steps())
    await kube.delete(PODS, f"pair-{len(stops) + 1}-1", namespace, grace_seconds=0)
    await pair.trains(len(stops) + 2)
    await reaches(kube, namespace, "pair", "Succeeded", seconds=120)

    for rank in (0, 1):
        runs = [losses(one) for one in await pair.printed(rank)]
        assert all(one.items() <= losses(told[rank]).items() for one in runs)
        assert set().union(*runs) == set(range(1, STEPS + 1))
        firsts, lasts = [min(one) for one in runs], [max(one) for one in runs]
        assert firsts[1 : len(stops) + 1] == [last + 1 for last in lasts[: len(stops)]], (
            "a preempted job makes no step twice"
        )
        assert weights((await pair.printed(rank))[-1]) == weights(told[rank])


async def _is_retuned_in_place(pair: Pair) -> None:
    """The node's other pod goes: both containers get its CPU while they train."""
    before = [await pair.container(rank, 1) for rank in (0, 1)]
    assert [number(one["resources"]["limits"]["cpu"]) for one in before] == [0.3, 0.3]
    await pair.kube.delete(PODS, "rest", pair.namespace)

    async def both_have_more() -> bool:
        now = [await pair.container(rank, 1) for rank in (0, 1)]
        return all(number(one["resources"]["limits"]["cpu"]) == 0.5 for one in now)

    await eventually(both_have_more, seconds=45, what="both containers to have the CPU")
    await pair.trains(1, steps=await pair.steps() + 2)
    after = [await pair.container(rank, 1) for rank in (0, 1)]
    for one, other in zip(before, after, strict=True):
        assert (one["containerID"], other["restartCount"]) == (other["containerID"], 0)
