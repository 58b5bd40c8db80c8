"""ResourceQuotas of the real API server, with the real operator, extender and kube-scheduler, on fake nodes.

Rounds of 5 s under LAS, where a job that never ran stands at the head of the line.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import synergy_devcluster
from support.extender.team import Team, endless
from support.extender.world import Replica
from support.on_cluster.jobs import matrix
from support.operator.stage import GIB, V100, running_operator
from support.waiting import eventually
from synergy_extender.snapshot.quotas import NamespaceQuotas
from synergy_kube import KubeClient
from synergy_kube.resources import NAMESPACES, PODS, RESOURCE_QUOTAS, SCHEDULING_POLICIES

pytestmark = pytest.mark.integration

Json = dict[str, Any]
NODE = "fake-v100-010"
GPUS = "requests.nvidia.com/gpu"


class Namespace(Team):
    """A namespace with jobs of 4 GPUs each, all on one node of 8."""

    async def wants_four(self, name: str, **spec: Any) -> None:
        """Submit one."""
        await self.wants(name, 4, V100, **{"template": on_node(), **spec})

    async def quota(self, name: str, hard: Json, **spec: Any) -> None:
        """Make a ResourceQuota and wait until the API server counts it."""
        await self.kube.create(
            RESOURCE_QUOTAS, {"metadata": {"name": name}, "spec": {"hard": hard, **spec}}, self.namespace
        )

        async def counted() -> bool:
            status = (await self.kube.get(RESOURCE_QUOTAS, name, self.namespace)).get("status") or {}
            return set(status.get("used") or {}) == set(hard)

        await eventually(counted, seconds=20, what=f"quota {name} to be counted", every=0.05)

    async def waits_for_quota(self, name: str) -> str:
        """What the job is told once it waits for its quota."""

        async def told() -> str:
            queue = (await self.status(name)).get("queue") or {}
            return str(queue.get("message", "")) if queue.get("reason") == "QuotaFull" else ""

        return await eventually(told, seconds=20, what=f"{name} to wait for its quota", every=0.05)

    async def kept(self, name: str, times: int) -> None:
        """Wait until so many rounds have kept the job where it is."""
        held, first = (await self.status(name))["allocation"], await self.planned_round()

        async def later() -> bool:
            return await self.planned_round() >= first + times

        await eventually(later, seconds=10 + 10 * times, what=f"{times} rounds to be planned", every=0.1)
        now = (await self.status(name))["allocation"]
        assert (now["run"], now["state"]) == (held["run"], "Granted")


def on_node() -> Json:
    """A template that admits one fake node."""
    made = endless()
    made["spec"]["nodeSelector"] = {"kubernetes.io/hostname": NODE}
    return made


@pytest_asyncio.fixture(scope="module")
async def las(kube: KubeClient, extender: Replica) -> AsyncIterator[None]:
    """Who has attained least service goes first."""
    await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": {"policy": "las"}})
    yield
    await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": {"policy": "fifo"}})


@pytest_asyncio.fixture(scope="module")
async def real_operator(
    devcluster: synergy_devcluster.Cluster, kube_scheduler: Path, las: None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[None]:
    """The operator's process."""
    async with running_operator(devcluster.kubeconfig, tmp_path_factory.mktemp("operator")):
        yield


@pytest.fixture
def red(kube: KubeClient, namespace: str, real_operator: None) -> Namespace:
    """A namespace that gets a quota."""
    return Namespace(kube, namespace)


@pytest_asyncio.fixture
async def blue(kube: KubeClient, namespace: str, real_operator: None) -> AsyncIterator[Namespace]:
    """Another one, without."""
    name = f"{namespace}-blue"
    await kube.create(NAMESPACES, {"metadata": {"name": name}})
    yield Namespace(kube, name)
    await kube.delete(NAMESPACES, name)


def undisturbed(status: Json) -> bool:
    """Whether the job is still in its first run."""
    service = status["service"]
    return (service["run"], status["allocation"]["run"], service.get("preemptions", 0)) == (1, 1, 0)


async def test_a_job_over_its_quota_waits_with_its_numbers_while_others_run_on_and_enters_once_it_is_raised(
    red: Namespace, blue: Namespace
) -> None:
    for name in ("one", "two"):
        await blue.wants_four(name)
        await blue.runs(name)
    await red.quota("gpus", {GPUS: "2"})
    await red.wants_four("greedy")
    message = await red.waits_for_quota("greedy")
    assert f"quota {red.namespace}/gpus allows 2 of {GPUS} and has 2 left, and it needs 4" in message
    await blue.kept("one", 3)
    assert [undisturbed(await blue.status(name)) for name in ("one", "two")] == [True, True]
    status = await red.status("greedy")
    assert "allocation" not in status, "it was never given what it could not use"
    assert (status.get("service") or {}).get("refusals", 0) == 0

    await red.kube.merge_patch(RESOURCE_QUOTAS, "gpus", {"spec": {"hard": {GPUS: "4"}}}, red.namespace)
    status = await red.runs("greedy")
    assert undisturbed(status)
    left = [name for name in ("one", "two") if not undisturbed(await blue.status(name))]
    assert len(left) == 1, "it displaces one as soon as it may"


async def test_jobs_of_one_namespace_take_turns_within_its_quota_and_nobody_is_refused(red: Namespace) -> None:
    """There are GPUs for both. The newcomer's pods are made once the quota has counted those of the other as gone."""
    await red.quota("gpus", {GPUS: "4"})
    await red.wants_four("old")
    await red.runs("old")
    await red.wants_four("new")
    status = await red.runs("new")
    assert undisturbed(status)
    assert status["service"].get("refusals", 0) == 0
    old = await red.status("old")
    assert old["service"]["preemptions"] == 1
    assert old["service"]["last"]["outcome"] == "Yielded"


async def test_what_pods_of_others_hold_is_counted_until_they_are_gone(red: Namespace) -> None:
    await red.quota("pods", {"pods": "2"})
    for name in ("a", "b"):
        body = {
            "metadata": {"name": name},
            "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "x"}]},
        }
        await red.kube.create(PODS, body, red.namespace)
    await red.wants_four("job")
    message = await red.waits_for_quota("job")
    assert "allows 2 of pods and has 0 left, and it needs 1" in message
    await red.kube.delete(PODS, "a", red.namespace, grace_seconds=0)
    assert undisturbed(await red.runs("job"))


async def test_a_quota_of_services_counts_the_service_that_a_job_has_kept(red: Namespace) -> None:
    await red.quota("services", {"services": "1"})
    await red.wants_four("first")
    await red.runs("first")
    await red.wants_four("second")
    assert "has 0 left, and it needs 1" in await red.waits_for_quota("second")
    (pod,) = [pod for pod in await red.pods() if pod["metadata"]["name"].startswith("first")]
    await red.kube.delete(PODS, pod["metadata"]["name"], red.namespace, grace_seconds=0)

    async def again() -> bool:
        return bool(((await red.status("first")).get("service") or {}).get("run") == 2)

    await eventually(again, seconds=60, what="a second run with the Service of the first")


async def test_a_job_grows_as_far_as_a_quota_of_cpu_goes_and_no_resize_is_refused(red: Namespace) -> None:
    """Alone on its node it would have all 24 CPUs; 4 GPUs' share is 12."""
    await red.quota("cpu", {"limits.cpu": "17"})
    hungry = {"mode": "Provided", "matrices": [matrix(V100, {12_000: 1.0, 24_000: 2.0}, 4 * GIB)]}
    await red.wants_four("hungry", profile=hungry)
    await red.runs("hungry")

    async def grown() -> bool:
        quota = await red.kube.get(RESOURCE_QUOTAS, "cpu", red.namespace)
        return float(quota["status"]["used"]["limits.cpu"].removesuffix("m")) in (17, 17_000)

    await eventually(grown, seconds=20, what="its workers to have what the quota allows", every=0.1)
    status = await red.status("hungry")
    assert undisturbed(status)
    assert status.get("sizeLimits") is None
    assert status["allocation"]["workers"][0]["cpuMillis"] == 17_000


async def test_the_books_are_those_of_the_api_server(red: Namespace, extender: Replica) -> None:
    """Every resource that is read, for a pod with a sidecar, init containers and a scope that matches."""
    resources = [GPUS, "requests.cpu", "limits.cpu", "requests.memory", "limits.memory", "cpu", "memory", "pods"]
    hard = dict.fromkeys([*resources, "count/pods"], "1000") | {"requests.memory": "1Ti", "limits.memory": "1Ti"}
    hard["memory"] = "1Ti"
    sidecar = {"requests": {"cpu": "200m", "memory": "64Mi"}, "limits": {"cpu": "700m", "memory": "256Mi"}}
    init = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}
    own = on_node()
    own["spec"]["containers"].append({"name": "logs", "image": "x", "resources": sidecar})
    own["spec"]["initContainers"] = [{"name": "fetch", "image": "x", "resources": init}]
    await red.quota("all", hard)
    await red.quota("running", dict(hard), scopes=["NotTerminating"])
    await red.quota("others", {"pods": "0"}, scopes=["Terminating"])
    await red.quota(
        "classes",
        {"pods": "0"},
        scopeSelector={"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["x"]}]},
    )
    await red.wants_four("job", template=own)
    await red.runs("job")

    async def agrees() -> bool:
        state = extender.extender.cache.state()
        job = next(job for job in state.jobs.values() if job.key.namespace == red.namespace)
        held = NamespaceQuotas(state).held(job)
        for quota in state.quotas:
            if quota.namespace == red.namespace:
                ours = {resource: held.get((str(quota), resource), 0) for resource in quota.hard}
                if ours != quota.used:
                    return False
        return held != {}

    await eventually(agrees, seconds=20, what="the extender to count as the API server does", every=0.1)
