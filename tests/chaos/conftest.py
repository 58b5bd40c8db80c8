"""A devcluster of the harness's own size, and on it all that is under test."""

import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

import synergy_devcluster
from chaos.stage import Stage, stage
from chaos.workload import fake_nodes
from synergy_kube import KubeClient

_JOBS = 100


@pytest.fixture(autouse=True)
def told(caplog: pytest.LogCaptureFixture) -> None:
    """A failure shows what happened before it, and when."""
    caplog.set_level(logging.INFO, logger="chaos")


@pytest.fixture(scope="session")
def devcluster() -> Iterator[synergy_devcluster.Cluster]:
    """Up for these tests, which kill it and cut it off; one that is there already is not theirs."""
    options = synergy_devcluster.Options(fake_nodes=synergy_devcluster.parse_fake_nodes(fake_nodes(_JOBS)))
    with synergy_devcluster.alone(options, report=print) as cluster:
        yield cluster


@pytest_asyncio.fixture(scope="session")
async def whole(
    kube: KubeClient, devcluster: synergy_devcluster.Cluster, repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    """All of it works; each test leaves it so."""
    async with stage(devcluster, kube, repository, tmp_path_factory.mktemp("chaos")) as made:
        yield made
