"""A devcluster of the harness's own size."""

from collections.abc import Iterator

import pytest

import synergy_devcluster
from chaos.workload import FAKE_NODES


@pytest.fixture(scope="session")
def devcluster() -> Iterator[synergy_devcluster.Cluster]:
    """Up for these tests, which kill it and cut it off; one that is there already is not theirs."""
    options = synergy_devcluster.Options(fake_nodes=synergy_devcluster.parse_fake_nodes(FAKE_NODES))
    with synergy_devcluster.alone(options, report=print) as cluster:
        yield cluster
