"""The operator as a process beside the devcluster, with the rights that the chart gives it and no others.

The tests play the extender and the scheduler.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

import synergy_devcluster
from support.extender.world import without_the_product
from support.on_cluster.service_account import kubeconfig_of
from support.operator.stage import OperatorProcess, Stage, running_operator
from support.programs import run
from synergy_kube import KubeClient


@pytest_asyncio.fixture(scope="package")
async def least_rights(
    devcluster: synergy_devcluster.Cluster,
    kube: KubeClient,
    repository: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Path]:
    """A kubeconfig of a service account with the chart's ClusterRole for the operator."""
    chart = str(repository / "helm" / "kube-synergy")
    rendered = await run(devcluster, "helm", "template", "kube-synergy", chart, "--kube-version=1.36")
    roles = [item for item in yaml.safe_load_all(rendered) if item and item["kind"] == "ClusterRole"]
    rules = next(role["rules"] for role in roles if role["metadata"]["name"] == "kube-synergy-operator")
    async with kubeconfig_of(kube, devcluster.kubeconfig, rules, tmp_path_factory.mktemp("rights")) as file:
        yield file


@pytest_asyncio.fixture(scope="package")
async def operator(
    kube: KubeClient, known_definitions: None, least_rights: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[OperatorProcess]:
    """A running operator."""
    folder = tmp_path_factory.mktemp("operator")
    async with without_the_product(kube), running_operator(least_rights, folder) as process:
        yield process


@pytest.fixture
def stage(kube: KubeClient, namespace: str, operator: OperatorProcess) -> Stage:
    """A fresh namespace to play in."""
    return Stage(kube, namespace)
