"""One extender and one kube-scheduler for these tests, on the devcluster's API server and fake nodes."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

import synergy_devcluster
from support.extender.world import Operator, Replica, policy_of_5_s, replica, scheduler, without_the_product
from support.waiting import eventually
from synergy_devcluster.control_plane.pki import Authority
from synergy_kube import KubeClient
from synergy_kube.resources import NAMESPACES, SCHEDULING_POLICIES


@pytest.fixture(scope="package")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who signed the certificates of extender and scheduler."""
    made = Authority(tmp_path_factory.mktemp("tls"))
    made.server("tls", ("localhost", "127.0.0.1"))
    return made


@pytest_asyncio.fixture(scope="package")
async def five_second_rounds(kube: KubeClient, custom_resources: None) -> AsyncIterator[None]:
    """Rounds of 5 s, first in, first out."""
    async with policy_of_5_s(kube):
        yield


@pytest_asyncio.fixture(scope="package")
async def home(kube: KubeClient) -> AsyncIterator[str]:
    """The namespace that the extender calls its own."""
    name = f"extender-{uuid.uuid4().hex[:8]}"
    await kube.create(NAMESPACES, {"metadata": {"name": name}})
    yield name
    await kube.delete(NAMESPACES, name)


@pytest_asyncio.fixture(scope="package")
async def extender(
    devcluster: synergy_devcluster.Cluster,
    kube: KubeClient,
    five_second_rounds: None,
    home: str,
    authority: Authority,
) -> AsyncIterator[Replica]:
    """A replica that leads."""
    async with (
        without_the_product(kube),
        replica(devcluster.kubeconfig, home, authority, "extender-0", autoscaling=True) as running,
    ):
        yield running


@pytest_asyncio.fixture(scope="package")
async def kube_scheduler(
    devcluster: synergy_devcluster.Cluster, extender: Replica, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Path]:
    """A kube-scheduler that asks it; the folder of its log."""
    folder = tmp_path_factory.mktemp("scheduler")
    async with scheduler(devcluster.program("kube-scheduler"), devcluster.kubeconfig, extender, folder):
        yield folder


@pytest_asyncio.fixture
async def rounds_of_an_hour(kube: KubeClient, extender: Replica) -> AsyncIterator[None]:
    """For what a round's end would settle otherwise."""
    await _set_rounds(kube, extender, 3600)
    yield
    await _set_rounds(kube, extender, 5)


async def _set_rounds(kube: KubeClient, extender: Replica, seconds: int) -> None:
    await kube.merge_patch(SCHEDULING_POLICIES, "default", {"spec": {"roundSeconds": seconds}})

    async def heard() -> bool:
        return extender.extender.loop.rounds.seconds == seconds

    await eventually(heard, seconds=10, what=f"rounds of {seconds} s", every=0.02)


@pytest.fixture
def operator(kube: KubeClient, namespace: str, extender: Replica) -> Operator:
    """Somebody who plays the operator in a fresh namespace."""
    return Operator(kube, namespace)
