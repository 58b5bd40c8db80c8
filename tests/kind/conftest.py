"""A real kind cluster, made as the demo makes it on a machine without Docker."""

import time
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from support.needed import lacks
from support.on_cluster.on_kind import OnKind
from synergy_cli.demo.kind import KindCluster
from synergy_cli.demo.kind_tools import OwnTools
from synergy_devcluster import DevclusterError
from synergy_devcluster.kind.docker import OwnDocker, leftovers
from synergy_kube import KubeClient


@pytest.fixture(scope="session")
def own_docker() -> Iterator[OwnDocker]:
    """The project's own Docker daemon, running; nothing of it is left afterwards. Where it cannot run, what needs it is
    skipped."""
    docker = OwnDocker.of()
    try:
        docker.start(print)
    except DevclusterError as error:
        lacks(f"dockerd does not run on this machine: {error}")
    yield docker
    docker.end()
    assert leftovers(docker) == []


@pytest.fixture(scope="session")
def on_kind(own_docker: OwnDocker) -> Iterator[OnKind]:
    """The cluster with fake GPUs and the chart."""
    told: list[str] = []
    tools = OwnTools()
    place = KindCluster(tools=tools)
    place.check()
    begun = time.monotonic()

    def report(text: str) -> None:
        told.append(text)
        print(f"{time.monotonic() - begun:6.1f} s  {text}")

    place.start(report)
    yield OnKind(place, tools, own_docker, told)
    place.end(told.append)
    assert told[-1] == "kind delete cluster --name kube-synergy"


@pytest_asyncio.fixture(scope="session")
async def kube(on_kind: OnKind) -> AsyncIterator[KubeClient]:
    """An administrator's client of the kind cluster."""
    async with await KubeClient.connect(kubeconfig=str(on_kind.place.kubeconfig)) as client:
        yield client
