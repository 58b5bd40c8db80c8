"""Node capacities: GPU type, reserved parts, schedulability, and contradictions that never stop other nodes."""

from typing import Any

import pytest

from synergy_api.amounts import Amounts
from synergy_api.cluster.pool import Pool, read_pools
from synergy_api.cluster.pools import NodeCapacity, node_capacities, pool_problems
from synergy_api.reasons import Reason
from synergy_api.resources.gpu_pool import GPUPoolSpec

GI = 1 << 30
FAKE_TAINT = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}


def node(name: str, *, labels: dict[str, str] | None = None, ready: str = "True", **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": {
            "allocatable": {"nvidia.com/gpu": "8", "cpu": "24", "memory": "500Gi"},
            "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}],
        },
    }


def pool(name: str, selector: dict[str, str], gpu_type: str = "V100", **more: Any) -> Pool:
    spec = {"nodeSelector": selector, "gpuType": gpu_type, **more}
    return Pool(name, GPUPoolSpec.model_validate(spec))


def only(found: list[NodeCapacity]) -> NodeCapacity:
    assert len(found) == 1
    return found[0]


def test_the_matching_pool_gives_type_price_bandwidth_and_what_it_reserves() -> None:
    v100 = pool(
        "v",
        {"rack": "r1"},
        pricePerHour=2.5,
        storageBandwidth=10**9,
        systemReserved={"cpu": "2", "memory": "20Gi"},
    )
    found = only(node_capacities([node("n1", labels={"rack": "r1"})], [v100]))
    assert found == NodeCapacity("n1", "V100", Amounts(8, 22000, 480 * GI), True, 1, 10**9, 2.5, "v", gpus_built_in=8)


def test_without_a_pool_the_discovered_product_counts_without_the_mark_of_sharing() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SHARED", "nvidia.com/gpu.replicas": "4"}
    found = only(node_capacities([node("n1", labels=labels)], []))
    assert (found.gpu_type, found.replicas, found.schedulable, found.problem) == ("NVIDIA-A100", 4, True, None)


def test_nodes_come_in_order_of_name_and_those_without_gpus_are_left_out() -> None:
    plain = node("a-cpu")
    del plain["status"]["allocatable"]["nvidia.com/gpu"]
    labels = {"nvidia.com/gpu.product": "T4"}
    assert [c.name for c in node_capacities([node("z", labels=labels), plain, node("b", labels=labels)], [])] == [
        "b",
        "z",
    ]


@pytest.mark.parametrize(
    ("bad", "story"),
    [
        ({"ready": "False"}, "not ready"),
        ({"ready": "Unknown"}, "unreachable"),
        ({"unschedulable": True}, "cordoned"),
        ({"taints": [FAKE_TAINT]}, "tainted NoSchedule"),
        ({"taints": [{"key": "k", "effect": "NoExecute"}]}, "tainted NoExecute"),
    ],
)
def test_a_node_that_takes_nothing_new_is_not_schedulable(bad: dict[str, Any], story: str) -> None:
    found = only(node_capacities([node("n", labels={"nvidia.com/gpu.product": "T4"}, **bad)], []))
    assert not found.schedulable, story
    assert found.gpus == 8


def test_a_node_being_deleted_is_not_schedulable() -> None:
    going = node("n", labels={"nvidia.com/gpu.product": "T4"})
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert not only(node_capacities([going], [])).schedulable


@pytest.mark.parametrize(
    "toleration",
    [
        {"operator": "Exists"},
        {"key": "kwok.x-k8s.io/node", "operator": "Exists"},
        {"key": "kwok.x-k8s.io/node", "value": "fake"},
        {"key": "kwok.x-k8s.io/node", "operator": "Equal", "value": "fake", "effect": "NoSchedule"},
    ],
)
def test_a_tolerated_taint_does_not_matter(toleration: dict[str, str]) -> None:
    tainted = node("n", labels={"nvidia.com/gpu.product": "T4"}, taints=[FAKE_TAINT])
    assert only(node_capacities([tainted], [], [toleration])).schedulable


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "other", "operator": "Exists"},
        {"key": "kwok.x-k8s.io/node", "value": "real"},
        {"key": "kwok.x-k8s.io/node", "operator": "Exists", "effect": "NoExecute"},
    ],
)
def test_a_toleration_of_something_else_does_not_help(toleration: dict[str, str]) -> None:
    tainted = node("n", labels={"nvidia.com/gpu.product": "T4"}, taints=[FAKE_TAINT])
    assert not only(node_capacities([tainted], [], [toleration])).schedulable


def test_prefer_no_schedule_and_the_customary_gpu_taint_are_no_obstacle() -> None:
    taints = [{"key": "x", "effect": "PreferNoSchedule"}, {"key": "nvidia.com/gpu", "effect": "NoSchedule"}]
    found = only(node_capacities([node("n", labels={"nvidia.com/gpu.product": "T4"}, taints=taints)], []))
    assert found.schedulable


def test_two_pools_on_one_node_are_a_named_problem_and_the_first_name_is_used() -> None:
    pools = [pool("b", {"x": "1"}, "A100"), pool("a", {"y": "1"}, "V100")]
    found = only(node_capacities([node("n", labels={"x": "1", "y": "1"})], pools))
    assert (found.gpu_type, found.schedulable) == ("V100", True)
    assert found.problem is not None
    assert (found.problem.finding.reason, found.problem.pools) == (Reason.AMBIGUOUS_POOL, ("a", "b"))
    assert "spec.nodeSelector" in found.problem.finding.message


def test_contradictions_name_what_to_change_and_leave_other_nodes_alone() -> None:
    broken = node("n2", labels={"nvidia.com/gpu.product": "T4"})
    broken["status"]["allocatable"]["memory"] = "lots"
    found = node_capacities(
        [node("n1"), broken, node("n3", labels={"r": "1"}), node("n4", labels={"nvidia.com/gpu.product": "T4"})],
        [pool("greedy", {"r": "1"}, systemReserved={"cpu": "25"})],
    )
    problems = {c.name: c.problem.finding.reason for c in found if c.problem is not None}
    assert problems == {
        "n1": Reason.NODE_OF_UNKNOWN_TYPE,
        "n2": Reason.INVALID_NODE,
        "n3": Reason.RESERVED_TOO_LARGE,
    }
    assert [c.name for c in found if c.schedulable] == ["n3", "n4"]
    assert found[2].amounts.cpu_millis == 0


def test_a_pool_that_says_other_replicas_than_the_device_plugin_is_a_problem() -> None:
    shared = pool("p", {"r": "1"}, sharing={"mode": "MPS", "replicas": 2})
    found = only(node_capacities([node("n", labels={"r": "1", "nvidia.com/gpu.replicas": "4"})], [shared]))
    assert found.problem is not None
    assert found.problem.finding.reason == Reason.SHARING_MISMATCH


SHARED = {
    "r": "1",
    "nvidia.com/gpu.count": "4",
    "nvidia.com/gpu.memory": "16384",
    "nvidia.com/gpu.replicas": "2",
    "nvidia.com/gpu.sharing-strategy": "mps",
}


@pytest.mark.parametrize(
    ("preference", "count", "clients", "devices", "by_order"),
    [("Packed", "4", 2, 2, True), ("Distributed", "4", 1, 1, False), ("Distributed", "1", 2, 2, False)],
)
def test_shared_gpus_count_once_and_have_clients_where_partners_can_be_chosen(
    preference: str, count: str, clients: int, devices: int, by_order: bool
) -> None:
    shared = pool("p", {"r": "1"}, sharing={"mode": "MPS", "replicas": 2, "preference": preference})
    made = node("n", labels={**SHARED, "nvidia.com/gpu.count": count})
    made["status"]["allocatable"]["nvidia.com/gpu"] = str(2 * int(count))
    found = only(node_capacities([made], [shared]))
    assert (found.gpus, found.gpu_memory_bytes, found.problem) == (int(count), 16 * GI, None)
    assert (found.clients, found.devices_per_gpu, found.by_order) == (clients, devices, by_order)
    assert found.client_thread_percent == 50, "with one client a GPU too"


def test_a_node_whose_other_gpus_are_sick_is_no_node_of_one_gpu() -> None:
    shared = pool("p", {"r": "1"}, sharing={"mode": "MPS", "replicas": 2})
    made = node("n", labels=SHARED)
    made["status"]["allocatable"]["nvidia.com/gpu"] = "2"
    assert only(node_capacities([made], [shared])).clients == 1


def test_renamed_replicas_are_gpus_too() -> None:
    shared = pool("p", {"r": "1"}, sharing={"mode": "MPS", "replicas": 2, "preference": "Packed"})
    made = node("n", labels=SHARED)
    del made["status"]["allocatable"]["nvidia.com/gpu"]
    made["status"]["allocatable"]["nvidia.com/gpu.shared"] = "8"
    found = only(node_capacities([made], [shared]))
    assert (found.gpus, found.resource) == (4, "nvidia.com/gpu.shared")


@pytest.mark.parametrize(
    ("sharing", "labels", "words"),
    [
        (
            {"mode": "MPS", "replicas": 2},
            {"nvidia.com/gpu.sharing-strategy": "none", "nvidia.com/gpu.replicas": "1"},
            "spec.sharing.mode is MPS, but node n is labelled nvidia.com/gpu.sharing-strategy=none",
        ),
        (
            {"mode": "MPS", "replicas": 2},
            {"nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.replicas": "2"},
            "spec.sharing.mode is MPS, but node n is labelled nvidia.com/gpu.sharing-strategy=time-slicing",
        ),
        (
            {"mode": "None"},
            SHARED,
            "spec.sharing.mode is None, but node n is labelled nvidia.com/gpu.sharing-strategy=mps",
        ),
        (
            {"mode": "MPS", "replicas": 4},
            SHARED,
            "spec.sharing.replicas is 4, but node n is labelled nvidia.com/gpu.replicas=2",
        ),
    ],
)
def test_where_pool_and_node_differ_the_node_counts_and_the_pool_is_told(
    sharing: dict[str, Any], labels: dict[str, str], words: str
) -> None:
    made = node("n", labels={**labels, "r": "1"})
    found = only(node_capacities([made], [pool("p", {"r": "1"}, sharing=sharing)]))
    assert found.problem is not None
    assert words in found.problem.finding.message
    assert found.replicas == int(labels["nvidia.com/gpu.replicas"])
    if sharing["mode"] != "MPS" or labels["nvidia.com/gpu.sharing-strategy"] != "mps":
        assert found.clients == 1
    limited = labels["nvidia.com/gpu.sharing-strategy"] == "mps"
    assert found.client_thread_percent == (50 if limited else 100), "whoever is right about sharing"


def test_pool_problems_come_once_and_name_pools_without_nodes() -> None:
    pools = [pool("a", {"x": "1"}), pool("b", {"x": "1"}), pool("idle", {"no": "where"})]
    capacities = node_capacities([node("n1", labels={"x": "1"}), node("n2", labels={"x": "1"})], pools)
    assert [(p.finding.reason, p.pools) for p in pool_problems(pools, capacities)] == [
        (Reason.AMBIGUOUS_POOL, ("a", "b")),
        (Reason.NO_NODES, ("idle",)),
    ]


def test_a_pool_that_does_not_parse_is_a_problem_that_names_the_field() -> None:
    good = {"metadata": {"name": "good"}, "spec": {"nodeSelector": {"a": "b"}, "gpuType": "T4"}}
    bad = {"metadata": {"name": "bad"}, "spec": {"nodeSelector": {"a": "b"}}}
    pools, problems = read_pools([bad, good])
    assert [p.name for p in pools] == ["good"]
    assert [(p.finding.reason, p.pools) for p in problems] == [(Reason.INVALID_POOL, ("bad",))]
    assert problems[0].finding.message.startswith("spec.gpuType")


def test_a_node_is_in_the_domains_of_its_pools_topology_up_to_the_first_that_it_lacks() -> None:
    levels = pool("p", {"x": "1"}, topology=["block", "rack", "nvlink"])
    of = {
        name: only(node_capacities([node("n", labels={"x": "1", **labels})], [levels])).domains
        for name, labels in {
            "all": {"block": "b1", "rack": "r1", "nvlink": "d1"},
            "gap": {"block": "b1", "nvlink": "d1"},
            "none": {"rack": "r1"},
        }.items()
    }
    assert of == {"all": ("b1", "r1", "d1"), "gap": ("b1",), "none": ()}
    assert only(node_capacities([node("n", labels={"nvidia.com/gpu.product": "T4", "block": "b1"})], [])).domains == ()
