"""Fixtures of the suites that need a cluster: one devcluster for all of them, a namespace for each test."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import settings

import synergy_devcluster
from support.api_server.crds import apply_crds, known_to_controllers
from support.failures import pytest_collectreport, pytest_runtest_logreport, pytest_sessionfinish
from support.folders import pytest_collect_directory
from support.on_cluster.namespaces import fresh_namespace
from support.on_cluster.tenants import all_allowed
from support.teardown import pytest_runtest_teardown
from synergy_cli.product import install
from synergy_devcluster import gpus
from synergy_devcluster.programs.processes import wait_for
from synergy_devcluster.real_nodes import REAL_NODE
from synergy_kube import KubeClient
from synergy_kube.resources import GPU_POOLS, SCHEDULING_POLICIES

__all__ = [
    "pytest_collect_directory",
    "pytest_collectreport",
    "pytest_runtest_logreport",
    "pytest_runtest_teardown",
    "pytest_sessionfinish",
]

# CI checks a change against the same examples each time; everywhere else the search goes on, a little with each run and
# for long with `make properties`. No example has a time limit: on a busy machine it would fail
settings.register_profile("few", max_examples=40, deadline=None)
settings.register_profile("ci", settings.get_profile("few"), derandomize=True)
settings.register_profile("many", max_examples=1000, deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "few")

REPOSITORY = Path(__file__).parent.parent
FAKE_NODES = "V100=25x8,T4=25x8"


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the source tree."""
    return REPOSITORY


@pytest.fixture(scope="session")
def devcluster() -> Iterator[synergy_devcluster.Cluster]:
    """A devcluster with two GPUs on the real node, a spare one that is unhealthy unless a test wants it, and 50 fake
    nodes of two types.

    One that runs already is used and left running: keep one up (`kube-synergy devcluster up --gpus 3`) while you work
    on a test.
    """
    options = synergy_devcluster.Options(gpus=3, fake_nodes=synergy_devcluster.parse_fake_nodes(FAKE_NODES))
    with synergy_devcluster.at_hand(options, report=print) as running:
        _set_aside(running)
        yield running


def _set_aside(cluster: synergy_devcluster.Cluster) -> None:
    for spare in gpus.listed(cluster)[2 : cluster.options.gpus]:
        if spare.healthy:
            gpus.set_health(cluster, spare.uuid, healthy=False)
    with cluster.api() as api:

        def aside() -> bool:
            allocatable = api.get(f"/api/v1/nodes/{REAL_NODE}")["status"]["allocatable"]
            return int(allocatable["nvidia.com/gpu"]) <= 2

        assert wait_for(aside, 30, 0.1), "the spare GPU is still there"


@pytest_asyncio.fixture(scope="session")
async def kube(devcluster: synergy_devcluster.Cluster) -> AsyncIterator[KubeClient]:
    """An administrator's client."""
    async with await KubeClient.connect(kubeconfig=str(devcluster.kubeconfig)) as client:
        yield client


@pytest_asyncio.fixture(scope="session")
async def custom_resources(kube: KubeClient, repository: Path) -> None:
    """The custom resource definitions of `crds/`, established."""
    await apply_crds(kube, repository)


@pytest_asyncio.fixture(scope="session")
async def known_definitions(kube: KubeClient, custom_resources: None) -> None:
    """The same, known to the controllers of quotas and of garbage collection: on a new cluster that takes up to half a
    minute, later a second."""
    await known_to_controllers(kube)


@pytest_asyncio.fixture
async def namespace(kube: KubeClient) -> AsyncIterator[str]:
    """A fresh namespace, deleted with all that is in it after the test."""
    async with fresh_namespace(kube) as name:
        yield name


@pytest_asyncio.fixture
async def everything_allowed(kube: KubeClient, namespace: str) -> AsyncIterator[str]:
    """A Tenant that lets the test's jobs ask for any weight, deadlines, and never to be preempted; its name."""
    async with all_allowed(kube, namespace) as name:
        yield name


@pytest.fixture(scope="session")
def product(devcluster: synergy_devcluster.Cluster) -> None:
    """kube-synergy itself, installed by its chart, its pods running from its images."""
    install(devcluster, report=print)


@pytest_asyncio.fixture
async def policy(kube: KubeClient, product: None) -> AsyncIterator[Callable[..., Awaitable[None]]]:
    """Set fields of the SchedulingPolicy in force; what stood before is put back after the test."""
    before = (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]

    async def change(**spec: Any) -> None:
        await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": spec})

    yield change
    now = (await kube.get(SCHEDULING_POLICIES, "default"))["spec"]
    await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": _back_to(before, now)})


def _back_to(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """The merge patch that makes `now` what was before: what has come is null."""
    undone = {
        key: _back_to(value, now[key]) if isinstance(value, dict) and isinstance(now.get(key), dict) else value
        for key, value in before.items()
    }
    return {**dict.fromkeys(now.keys() - before.keys()), **undone}


@pytest_asyncio.fixture
async def pools(kube: KubeClient, product: None) -> AsyncIterator[None]:
    """GPUPools with short names for the devcluster's GPU types."""
    products = {"V100": "Tesla-V100-SXM2-16GB", "T4": "Tesla-T4", "A100": "NVIDIA-A100-SXM4-40GB"}
    for gpu_type, label in products.items():
        spec = {"gpuType": gpu_type, "nodeSelector": {"nvidia.com/gpu.product": label}}
        await kube.apply(GPU_POOLS, gpu_type.lower(), {"spec": spec}, manager="tests")
    yield
    for gpu_type in products:
        await kube.delete(GPU_POOLS, gpu_type.lower())
