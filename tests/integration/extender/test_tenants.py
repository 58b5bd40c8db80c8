"""Tenants on the real API server: what their status and conditions say of the tree, of nodes, and of jobs that run.

A GPU type of its own, on one fake node of 8 GPUs, so that it can become scarce. Rounds of 5 s.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

import synergy_devcluster
from support import recorded
from support.extender.team import Team, ask
from support.extender.world import Replica
from support.operator.stage import running_operator
from support.programs import run
from support.waiting import eventually
from synergy_kube import KubeClient
from synergy_kube.resources import GPU_POOLS, NAMESPACES, NODES, TENANTS

pytestmark = pytest.mark.integration

Json = dict[str, Any]
RARE = "RARE"
HOSTS = ("fake-v100-021", "fake-v100-022")


class Tree:
    """Tenants that a test writes; deleted after it."""

    def __init__(self, kube: KubeClient, prefix: str) -> None:
        self.kube = kube
        self.prefix = prefix
        self.names: list[str] = []

    def name(self, short: str) -> str:
        """A name that no other test has."""
        return f"{self.prefix}-{short}"

    async def write(self, short: str, parent: str = "", **spec: Any) -> None:
        """Create a Tenant."""
        full = {**spec, **({"parent": self.name(parent)} if parent else {})}
        await self.kube.create(TENANTS, {"metadata": {"name": self.name(short)}, "spec": full})
        self.names.append(self.name(short))

    async def status(self, short: str) -> Json:
        """The Tenant's status now."""
        found: Json = (await self.kube.get(TENANTS, self.name(short))).get("status") or {}
        return found

    async def says(self, short: str, **fields: Any) -> Json:
        """Wait until the status has these fields."""
        status: Json = {}

        async def so() -> bool:
            status.clear()
            status.update(await self.status(short))
            return all(status.get(field, {}) == value for field, value in fields.items())

        try:
            await eventually(so, seconds=40, what=f"tenant {short} to say {fields}", every=0.2)
        except AssertionError as error:
            raise AssertionError(f"{error}; its status: {status}") from None
        return status

    async def condition(self, short: str, kind: str, reason: str) -> str:
        """The message of the condition once it has the reason."""

        async def so() -> str:
            for one in (await self.status(short)).get("conditions") or []:
                if (one["type"], one["reason"]) == (kind, reason):
                    return str(one["message"])
            return ""

        return await eventually(so, seconds=30, what=f"tenant {short} to say {kind} {reason}", every=0.1)


@pytest_asyncio.fixture(scope="module")
async def rare(kube: KubeClient, extender: Replica) -> AsyncIterator[None]:
    """A pool of one node with a type of its own."""
    selector = {"kubernetes.io/hostname": HOSTS[0]}
    await kube.create(GPU_POOLS, {"metadata": {"name": "rare"}, "spec": {"nodeSelector": selector, "gpuType": RARE}})
    yield
    await kube.delete(GPU_POOLS, "rare")


@pytest_asyncio.fixture(scope="module")
async def real_operator(
    devcluster: synergy_devcluster.Cluster, kube_scheduler: Path, rare: None, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[None]:
    """The operator's process."""
    async with running_operator(devcluster.kubeconfig, tmp_path_factory.mktemp("operator")):
        yield


@pytest_asyncio.fixture
async def tree(kube: KubeClient, namespace: str, rare: None) -> AsyncIterator[Tree]:
    """No Tenant yet."""
    made = Tree(kube, namespace)
    yield made
    for name in made.names:
        await kube.delete(TENANTS, name)


@pytest.fixture
def red(kube: KubeClient, namespace: str, real_operator: None) -> Team:
    """A namespace."""
    return Team(kube, namespace)


@pytest_asyncio.fixture
async def blue(kube: KubeClient, namespace: str, real_operator: None) -> AsyncIterator[Team]:
    """Another one."""
    name = f"{namespace}-blue"
    await kube.create(NAMESPACES, {"metadata": {"name": name}})
    yield Team(kube, name)
    await kube.delete(NAMESPACES, name)


@pytest_asyncio.fixture
async def green(kube: KubeClient, namespace: str, real_operator: None) -> AsyncIterator[Team]:
    """A third one."""
    name = f"{namespace}-green"
    await kube.create(NAMESPACES, {"metadata": {"name": name}})
    yield Team(kube, name)
    await kube.delete(NAMESPACES, name)


async def test_conditions_tell_what_several_tenants_say_together(tree: Tree) -> None:
    await tree.write("child", "org", guarantee={RARE: 4})
    message = await tree.condition("child", "InTree", "UnknownParent")
    assert f"spec.parent names {tree.name('org')}" in message
    await tree.write("org", guarantee={RARE: 2})
    await tree.condition("child", "InTree", "ParentFound")
    message = await tree.condition("child", "GuaranteeKept", "GuaranteesAboveParent")
    assert "guaranteed 4 RARE together" in message
    await tree.kube.merge_patch(TENANTS, tree.name("org"), {"spec": {"guarantee": {RARE: 4}}})
    await tree.condition("child", "GuaranteeKept", "GuaranteeCovered")
    await tree.kube.merge_patch(TENANTS, tree.name("org"), {"spec": {"parent": tree.name("child")}})
    for short in ("org", "child"):
        assert "leads back to the tenant itself" in await tree.condition(short, "InTree", "ParentCycle")


async def test_guarantees_above_the_cluster_are_told_and_follow_its_nodes(tree: Tree, kube: KubeClient) -> None:
    await tree.write("a", guarantee={RARE: 12})
    message = await tree.condition("a", "GuaranteeKept", "GuaranteesAboveCluster")
    assert "all tenants are guaranteed 12 RARE together, and the cluster has 8" in message
    assert (await tree.says("a", guaranteed={RARE: 8}))["summary"] == {"guaranteed": "8 RARE"}
    second = {"nodeSelector": {"kubernetes.io/hostname": HOSTS[1]}, "gpuType": RARE}
    await kube.create(GPU_POOLS, {"metadata": {"name": "rare-second"}, "spec": second})
    try:
        await tree.condition("a", "GuaranteeKept", "GuaranteeCovered")
        await tree.says("a", guaranteed={RARE: 12})
        await kube.merge_patch(NODES, HOSTS[1], {"spec": {"unschedulable": True}})
        await tree.condition("a", "GuaranteeKept", "GuaranteesAboveCluster")
        await kube.merge_patch(NODES, HOSTS[1], {"spec": {"unschedulable": False}})
        await tree.condition("a", "GuaranteeKept", "GuaranteeCovered")
    finally:
        await kube.delete(GPU_POOLS, "rare-second")
    await tree.condition("a", "GuaranteeKept", "GuaranteesAboveCluster")


async def test_the_status_counts_what_runs_and_waits_and_kubectl_shows_it(
    tree: Tree, red: Team, blue: Team, devcluster: synergy_devcluster.Cluster
) -> None:
    await tree.write("org")
    await tree.write("red", "org", namespaces=[red.namespace], guarantee={RARE: 6})
    await tree.write("blue", "org", namespaces=[blue.namespace], guarantee={RARE: 2})
    await blue.wants("large", 6, RARE)
    await blue.runs("large")
    await blue.wants("waits", 8, RARE)
    status = await tree.says("blue", used={RARE: 6}, borrowed={RARE: 4}, waiting={RARE: 8}, lent={})
    assert status["summary"] == {"guaranteed": "2 RARE", "used": "6 RARE", "borrowed": "4 RARE", "waiting": "8 RARE"}
    await tree.says("red", used={}, lent={RARE: 4})
    await tree.says("org", used={RARE: 6}, guaranteed={RARE: 8}, waiting={RARE: 8})
    table = await run(devcluster, "kubectl", "get", "tenants", tree.name("blue"))
    assert "6 RARE" in table
    shown = json.loads(await ask(devcluster, "tenants", "-o", "json"))
    rows = {row["tenant"]: row for row in shown}
    recorded.record(
        "tenants",
        "kubectl synergy tenants",
        await ask(devcluster, "tenants"),
        {tree.prefix: "acme-research", RARE: "A100"},
    )
    assert rows[tree.name("blue")]["borrowed"] == {RARE: 4}
    assert [rows[tree.name(short)]["level"] for short in ("org", "red", "blue")] == [0, 1, 1]
    words = await ask(devcluster, "why", "waits", "-n", blue.namespace)
    assert f"tenant {tree.name('blue')}: guaranteed 2 RARE, limit -, used 6 RARE, waiting 8 RARE" in words
    assert f"tenant {tree.name('org')}: guaranteed 8 RARE" in words

    async def counted() -> Json | None:
        hours: Json = (await tree.status("blue")).get("gpuHours") or {}
        return hours if (hours.get("day") or {}).get(RARE, 0) > 0 else None

    await blue.wants("another", 1, RARE)  # counts are written again once something else has changed
    hours = await eventually(counted, seconds=30, what="GPU-hours", every=0.2)
    assert hours["day"] == hours["week"]


async def test_a_tenant_below_its_guarantee_gets_its_gpus_at_a_round_s_end_from_the_largest_borrower(
    tree: Tree, red: Team, blue: Team, green: Team
) -> None:
    """First in, first out would leave the jobs that came first where they are."""
    await tree.write("red", namespaces=[red.namespace], guarantee={RARE: 4})
    await tree.write("blue", namespaces=[blue.namespace])
    await tree.write("green", namespaces=[green.namespace])
    for team, name, gpus in ((blue, "large", 4), (blue, "small", 1), (green, "other", 3)):
        await team.wants(name, gpus, RARE)
        await team.runs(name)
    await tree.says("red", lent={RARE: 4})
    await tree.says("blue", borrowed={RARE: 5})
    await red.wants("owns", 4, RARE)
    status = await red.runs("owns")
    assert status["allocation"]["workers"][0]["gpus"] == 4
    assert status["service"]["run"] == 1
    large = (await blue.job("large"))["status"]
    assert large["service"]["preemptions"] == 1
    assert large["service"]["last"]["outcome"] == "Yielded"
    assert undisturbed(await green.job("other")), "the smaller borrower keeps its GPUs"
    assert undisturbed(await blue.job("small"))
    await tree.says("red", used={RARE: 4}, borrowed={}, lent={})
    await tree.says("blue", used={RARE: 1}, waiting={RARE: 4})


async def test_a_limit_holds_though_gpus_are_free_and_is_told(
    tree: Tree, red: Team, devcluster: synergy_devcluster.Cluster
) -> None:
    await tree.write("red", namespaces=[red.namespace], limit={RARE: 4})
    await red.wants("first", 3, RARE)
    await red.runs("first")
    await red.wants("second", 2, RARE)

    async def told() -> str:
        queue = ((await red.job("second")).get("status") or {}).get("queue") or {}
        return str(queue.get("message", "")) if queue.get("reason") == "TenantLimit" else ""

    message = await eventually(told, seconds=30, what="the limit to be told", every=0.1)
    assert f"tenant {tree.name('red')} may hold 4 of the {RARE} GPUs and has 3, and the job needs 2" in message
    words = await ask(devcluster, "why", "second", "-n", red.namespace)
    assert "TenantLimit" in words
    await tree.kube.merge_patch(TENANTS, tree.name("red"), {"spec": {"limit": {RARE: 5}}})
    await red.runs("second")


def undisturbed(job: Json) -> bool:
    """Whether the job is still in its first run."""
    service = job["status"]["service"]
    return (service["run"], service.get("preemptions", 0)) == (1, 0)
