"""A devcluster of three GPU types."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

import synergy_devcluster
from synergy_devcluster.gpu_plugin.gpu_types import gpu_type
from synergy_kube import KubeClient
from synergy_kube.resources import GPU_POOLS
from synergy_simulator.workloads.gavel_mix import TYPES

GPUS_OF_EACH = 8


@pytest.fixture(scope="session")
def devcluster() -> Iterator[synergy_devcluster.Cluster]:
    """Two fake nodes of four GPUs of each type, as `gavel_common.cluster` has them; the real node's GPUs are unused."""
    groups = ",".join(f"{name}={GPUS_OF_EACH // 4}x4" for name in TYPES)
    with synergy_devcluster.alone(
        synergy_devcluster.Options(gpus=1, fake_nodes=synergy_devcluster.parse_fake_nodes(groups)), report=print
    ) as running:
        yield running


@pytest_asyncio.fixture
async def pools(kube: KubeClient, product: None) -> AsyncIterator[None]:
    """GPUPools with the simulator's names for the types."""
    for name in TYPES:
        selector = {"nvidia.com/gpu.product": gpu_type(name).product}
        spec = {"gpuType": name, "nodeSelector": selector}
        await kube.apply(GPU_POOLS, name.lower(), {"spec": spec}, manager="tests")
    yield
    for name in TYPES:
        await kube.delete(GPU_POOLS, name.lower())
