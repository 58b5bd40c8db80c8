"""The engine with the rights that the chart gives it, a tenant who means ill, and one who only wants to train."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

import synergy_devcluster
from support.extender.world import Replica, replica, scheduler, without_the_product
from support.on_cluster.attacker import ROUND_SECONDS, Attacker, attacker_in
from support.on_cluster.namespaces import fresh_namespace
from support.on_cluster.service_account import kubeconfig_of
from support.operator.stage import OperatorProcess, running_operator
from support.programs import run
from support.waiting import eventually
from synergy_devcluster.control_plane.pki import Authority
from synergy_extender.leader import Timing
from synergy_kube import KubeClient, NotFound
from synergy_kube.resources import NAMESPACES, SCHEDULING_POLICIES, TENANTS

Json = dict[str, Any]
_APPLIED = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
_USER_ROLES = ("kube-synergy-view", "kube-synergy-edit")
_LEADER = [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]}]


@pytest_asyncio.fixture(scope="package")
async def chart(devcluster: synergy_devcluster.Cluster, repository: Path) -> list[Json]:
    """The chart's objects."""
    folder = str(repository / "helm" / "kube-synergy")
    rendered = await run(devcluster, "helm", "template", "kube-synergy", folder, "--kube-version=1.36")
    return [item for item in yaml.safe_load_all(rendered) if item]


@pytest_asyncio.fixture(scope="package")
async def rules(
    devcluster: synergy_devcluster.Cluster, kube: KubeClient, custom_resources: None, chart: list[Json]
) -> AsyncIterator[None]:
    """The chart's rights for people and its admission policy; a SchedulingPolicy with short rounds."""
    own = [
        item
        for item in chart
        if item["kind"] in _APPLIED or (item["kind"] == "ClusterRole" and item["metadata"]["name"] in _USER_ROLES)
    ]
    spec = {"policy": "las", "mechanism": "tune", "roundSeconds": ROUND_SECONDS}
    before: Json | None = None
    try:
        before = (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]
        await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": spec})
    except NotFound:
        await kube.create(SCHEDULING_POLICIES, {"metadata": {"name": "default"}, "spec": spec})
    await run(devcluster, "kubectl", "apply", "-f", "-", text_in=yaml.safe_dump_all(own))
    yield
    await run(devcluster, "kubectl", "delete", "--ignore-not-found", "-f", "-", text_in=yaml.safe_dump_all(own))
    if before is None:
        await kube.delete(SCHEDULING_POLICIES, "default")
    else:
        await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": before})


@pytest_asyncio.fixture(scope="package")
async def engine(
    devcluster: synergy_devcluster.Cluster,
    kube: KubeClient,
    rules: None,
    chart: list[Json],
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[Path, str, Authority]]:
    """What an extender needs: its rights, its namespace and its certificates."""
    authority = Authority(tmp_path_factory.mktemp("tls"))
    authority.server("tls", ("localhost", "127.0.0.1"))
    home = f"extender-{uuid.uuid4().hex[:8]}"
    await kube.create(NAMESPACES, {"metadata": {"name": home}})
    rights = [*_rules_of(chart, "kube-synergy-extender"), *_LEADER]
    async with kubeconfig_of(kube, devcluster.kubeconfig, rights, tmp_path_factory.mktemp("rights")) as file:
        yield file, home, authority
    await kube.delete(NAMESPACES, home)


@pytest_asyncio.fixture(scope="package")
async def extender(
    devcluster: synergy_devcluster.Cluster,
    kube: KubeClient,
    engine: tuple[Path, str, Authority],
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Replica]:
    """A replica that leads, and a kube-scheduler that asks it."""
    file, home, authority = engine
    folder = tmp_path_factory.mktemp("scheduler")
    async with (
        without_the_product(kube),
        replica(file, home, authority, "extender-0", leader=Timing()) as running,
        scheduler(devcluster.program("kube-scheduler"), devcluster.kubeconfig, running, folder),
    ):
        yield running


@pytest_asyncio.fixture(scope="package")
async def operator(
    devcluster: synergy_devcluster.Cluster,
    kube: KubeClient,
    extender: Replica,
    chart: list[Json],
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[OperatorProcess]:
    """A running operator."""
    folder = tmp_path_factory.mktemp("operator")
    rights = _rules_of(chart, "kube-synergy-operator")
    async with (
        kubeconfig_of(kube, devcluster.kubeconfig, rights, folder) as file,
        running_operator(file, folder) as process,
    ):
        yield process


def _rules_of(chart: list[Json], name: str) -> list[Json]:
    (role,) = [item for item in chart if item["kind"] == "ClusterRole" and item["metadata"]["name"] == name]
    rules: list[Json] = role["rules"]
    return rules


@pytest_asyncio.fixture
async def attacker(
    devcluster: synergy_devcluster.Cluster, kube: KubeClient, operator: OperatorProcess, namespace: str, tmp_path: Path
) -> AsyncIterator[Attacker]:
    """Somebody with `edit` in a fresh namespace."""
    async with attacker_in(kube, devcluster.kubeconfig, devcluster.program("kubectl"), namespace, tmp_path) as somebody:
        yield somebody


@pytest_asyncio.fixture
async def victim(kube: KubeClient, operator: OperatorProcess) -> AsyncIterator[str]:
    """Another tenant's fresh namespace."""
    async with fresh_namespace(kube) as name:
        yield name


@pytest_asyncio.fixture
async def tenants(
    kube: KubeClient, extender: Replica, attacker: Attacker, victim: str
) -> AsyncIterator[dict[str, str]]:
    """A Tenant of the attacker's and one of the victim's namespace; their names."""
    names = {"attacker": f"attackers-{attacker.namespace}", "victim": f"victims-{victim}"}
    await kube.create(TENANTS, {"metadata": {"name": names["attacker"]}, "spec": {"namespaces": [attacker.namespace]}})
    selector = {"matchLabels": {"kubernetes.io/metadata.name": victim}}
    await kube.create(
        TENANTS,
        {
            "metadata": {"name": names["victim"]},
            "spec": {"namespaceSelector": selector, "caps": {"maxWeight": 8, "maxNeverPreemptedGPUs": 2}},
        },
    )

    async def known() -> bool:
        conditions = [(await kube.get(TENANTS, name)).get("status", {}).get("conditions") for name in names.values()]
        return all(found and found[0]["status"] == "True" for found in conditions)

    await eventually(known, seconds=20, what="both Tenants to be Valid", every=0.1)
    yield names
    for name in names.values():
        await kube.delete(TENANTS, name)
