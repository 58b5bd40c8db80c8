"""A gang of two nodes comes to one rack, by the topology that its GPUPool names."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from support.on_cluster.jobs import fake_template, reaches, submit
from support.on_cluster.neighbours import label
from synergy_kube import KubeClient
from synergy_kube.resources import GPU_POOLS

pytestmark = pytest.mark.integration

EAST, WEST = ["fake-v100-015", "fake-v100-017"], ["fake-v100-016", "fake-v100-018"]
RACK = "topology.example.com/rack"


@pytest_asyncio.fixture
async def racks(kube: KubeClient) -> AsyncIterator[None]:
    """Four fake nodes in two racks, none beside its neighbour by name."""
    for name, nodes in (("east", EAST), ("west", WEST)):
        await label(kube, nodes, pool="racks", **{RACK: name})
    spec = {"gpuType": "V100", "nodeSelector": {"pool": "racks"}, "topology": [RACK]}
    await kube.apply(GPU_POOLS, "a-racks", {"spec": spec}, manager="tests")
    yield
    await kube.delete(GPU_POOLS, "a-racks")
    await label(kube, [*EAST, *WEST], pool=None, **{RACK: None})


@pytest.mark.usefixtures("pools", "racks")
async def test_gangs_of_two_nodes_are_each_in_one_rack(
    kube: KubeClient, namespace: str, policy: Callable[..., Awaitable[None]]
) -> None:
    await policy(policy="fifo", mechanism="tune", roundSeconds=5)
    template = fake_template(3600)
    template["spec"] |= {"nodeSelector": {"pool": "racks"}}
    gang = {"gpus": 16, "steps": 1_000_000, "gpuTypes": ["V100"], "profile": {"mode": "Skip"}, "template": template}
    for name in ("a", "b"):
        await submit(kube, namespace, name, **gang)
    places = []
    for name in ("a", "b"):
        found = await reaches(kube, namespace, name, "Running", seconds=90)
        places.append(sorted(share["node"] for share in found["status"]["allocation"]["workers"]))
    assert sorted(places) == [EAST, WEST]
