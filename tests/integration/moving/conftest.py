"""kube-synergy beside the devcluster: the operator as a process with the chart's rights, a leading extender, and a
kube-scheduler that asks it. Kubernetes' own controllers run in the devcluster.
"""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

import synergy_devcluster
from support.extender.world import policy_of_5_s, replica, scheduler, without_the_product
from support.on_cluster.namespaces import fresh_namespace
from support.on_cluster.service_account import kubeconfig_of
from support.operator.stage import OperatorProcess, running_operator
from support.programs import run
from synergy_devcluster.control_plane.pki import Authority
from synergy_kube import KubeClient
from synergy_kube.resources import GPU_POOLS

KINDS = "Job,JobSet,PyTorchJob,TrainJob"


@pytest_asyncio.fixture(scope="package")
async def five_second_rounds(kube: KubeClient, custom_resources: None) -> AsyncIterator[None]:
    """Rounds of 5 s, first in, first out."""
    async with policy_of_5_s(kube):
        yield


@pytest_asyncio.fixture(scope="package")
async def rights(
    devcluster: synergy_devcluster.Cluster,
    kube: KubeClient,
    repository: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Path]:
    """A kubeconfig with the rights of the chart's operator, if it manages all kinds."""
    chart = str(repository / "helm" / "kube-synergy")
    values = f"operator.managedKinds={{{KINDS}}}"
    rendered = await run(devcluster, "helm", "template", "kube-synergy", chart, "--kube-version=1.36", "--set", values)
    roles = [item for item in yaml.safe_load_all(rendered) if item and item["kind"] == "ClusterRole"]
    rules = next(role["rules"] for role in roles if role["metadata"]["name"] == "kube-synergy-operator")
    async with kubeconfig_of(kube, devcluster.kubeconfig, rules, tmp_path_factory.mktemp("rights")) as file:
        yield file


@pytest_asyncio.fixture(scope="package")
async def scheduling(
    devcluster: synergy_devcluster.Cluster,
    kube: KubeClient,
    five_second_rounds: None,
    rights: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[OperatorProcess]:
    """All three of them."""
    authority = Authority(tmp_path_factory.mktemp("tls"))
    authority.server("tls", ("localhost", "127.0.0.1"))
    folder = tmp_path_factory.mktemp("programs")
    program, config = devcluster.program("kube-scheduler"), devcluster.kubeconfig
    async with (
        fresh_namespace(kube) as home,
        without_the_product(kube),
        replica(config, home, authority, "extender-0") as leader,
        scheduler(program, config, leader, folder),
        running_operator(rights, folder, SYNERGY_MANAGED_KINDS=KINDS) as operator,
    ):
        yield operator


@pytest_asyncio.fixture
async def a100(kube: KubeClient, custom_resources: None) -> AsyncIterator[None]:
    """The fake V100s are called A100, as the examples name them."""
    name = f"a100-{uuid.uuid4().hex[:6]}"
    selector = {"nvidia.com/gpu.product": "Tesla-V100-SXM2-16GB"}
    await kube.create(GPU_POOLS, {"metadata": {"name": name}, "spec": {"gpuType": "A100", "nodeSelector": selector}})
    yield
    await kube.delete(GPU_POOLS, name)
