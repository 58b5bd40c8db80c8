"""A devcluster of 200 fake nodes, or of a part of them."""

import os
from collections.abc import Iterator

import pytest

import synergy_devcluster
from support.shared_day.size import WHOLE, Size


@pytest.fixture(scope="session")
def size() -> Size:
    """The whole day, or 1/SHARED_DAY_PART of it: on a machine that other work keeps busy."""
    return WHOLE.part(int(os.environ.get("SHARED_DAY_PART", "1")))


@pytest.fixture(scope="session")
def devcluster(size: Size) -> Iterator[synergy_devcluster.Cluster]:
    """Nodes with two GPUs each; GPUPools give them the day's types."""
    groups = f"V100={sum(size.nodes.values())}x{size.gpus_per_node}"
    with synergy_devcluster.alone(
        synergy_devcluster.Options(gpus=1, fake_nodes=synergy_devcluster.parse_fake_nodes(groups)), report=print
    ) as running:
        yield running
