"""What nodes lack for MPS."""

from typing import Any

import pytest

from synergy_api.cluster.mps import mps_problems
from synergy_api.cluster.pools import Pool
from synergy_api.resources.gpu_pool import GPUPoolSpec

GOOD = {
    "pool": "a",
    "nvidia.com/device-plugin.config": "shared",
    "nvidia.com/gpu.sharing-strategy": "mps",
    "nvidia.com/mps.capable": "true",
    "nvidia.com/gpu.replicas": "2",
    "nvidia.com/gpu.count": "4",
    "nvidia.com/gpu.product": "Tesla-V100-SXM2-16GB-SHARED",
}


def pool(mode: str = "MPS") -> Pool:
    sharing = {"mode": mode, "replicas": 2 if mode == "MPS" else 1}
    spec = {"gpuType": "V100", "nodeSelector": {"pool": "a"}, "sharing": sharing}
    return Pool("a", GPUPoolSpec.model_validate(spec))


def found(
    without: str = "", *, offers: dict[str, str] | None = None, mode: str = "MPS", **labels: str
) -> tuple[str, str] | None:
    told = {name: value for name, value in GOOD.items() if name != without}
    told |= {f"nvidia.com/{name.replace('__', '-').replace('_', '.')}": value for name, value in labels.items()}
    node: dict[str, Any] = {
        "metadata": {"name": "n1", "labels": told},
        "status": {"allocatable": offers or {"nvidia.com/gpu": "8"}},
    }
    return mps_problems([node], [pool(mode)]).get("n1")


def test_a_node_that_shares_as_its_pool_says_lacks_nothing() -> None:
    assert found() is None
    assert found(offers={"nvidia.com/gpu.shared": "8"}) is None
    assert found(without="nvidia.com/device-plugin.config") is None, "the plugin may share by its only configuration"
    assert found(without="nvidia.com/gpu.count") is None


def test_pools_that_do_not_share_and_nodes_of_no_pool_are_left_alone() -> None:
    assert found(gpu_sharing__strategy="none", mode="None") is None
    assert found(without="pool", gpu_sharing__strategy="none") is None


@pytest.mark.parametrize(
    ("answer", "problem", "todo"),
    [
        (found(offers={"nvidia.com/mig-1g.5gb": "7"}), "has MIG devices, which MPS does not share", "disable MIG"),
        (found(gpu_product="A100-SXM4-40GB-MIG-1g.5gb"), "has MIG devices", "disable MIG"),
        (
            found(without="nvidia.com/device-plugin.config", gpu_sharing__strategy="none"),
            "has no label nvidia.com/device-plugin.config",
            "label it with a configuration",
        ),
        (
            found(gpu_sharing__strategy="time-slicing"),
            "takes the configuration shared, and is labelled nvidia.com/gpu.sharing-strategy=time-slicing",
            "give shared sharing.mps",
        ),
        (found(without="nvidia.com/gpu.sharing-strategy"), "nvidia.com/gpu.sharing-strategy=none", "sharing.mps"),
        (found(mps_capable="false"), "nvidia.com/mps.capable=false", "GPU feature discovery"),
        (found(without="nvidia.com/mps.capable"), "nvidia.com/mps.capable=nothing", "GPU feature discovery"),
        (found(offers={"nvidia.com/gpu": "4"}), "offers 4 of 8 shared devices", "the logs of the MPS daemon"),
        (found(offers={"cpu": "4"}), "offers 0 of 8 shared devices", "the logs of the MPS daemon"),
    ],
)
def test_what_a_node_lacks_is_named_with_what_to_do(answer: tuple[str, str] | None, problem: str, todo: str) -> None:
    assert answer is not None
    assert problem in answer[0]
    assert todo in answer[1]
