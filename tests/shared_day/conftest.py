"""A devcluster of 200 fake nodes."""

from collections.abc import Iterator

import pytest

import synergy_devcluster
from support.shared_day.size import WHOLE


@pytest.fixture(scope="session")
def devcluster() -> Iterator[synergy_devcluster.Cluster]:
    """Nodes with two GPUs each; GPUPools give them the day's types."""
    groups = f"V100={sum(WHOLE.nodes.values())}x{WHOLE.gpus_per_node}"
    with synergy_devcluster.alone(
        synergy_devcluster.Options(gpus=1, fake_nodes=synergy_devcluster.parse_fake_nodes(groups)), report=print
    ) as running:
        yield running
