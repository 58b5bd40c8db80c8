"""A devcluster of the harness's own size."""

from collections.abc import Iterator

import pytest

import synergy_devcluster
from chaos.workload import FAKE_NODES


@pytest.fixture(scope="session")
def devcluster() -> Iterator[synergy_devcluster.Cluster]:
    """Up for these tests. Another devcluster that is up is in the way: this one is killed and cut off."""
    yield synergy_devcluster.up(
        synergy_devcluster.Options(fake_nodes=synergy_devcluster.parse_fake_nodes(FAKE_NODES)), report=print
    )
    synergy_devcluster.down()
