"""GPUs of other names than NVIDIA's, and nodes with devices that are not planned: what is counted where."""

from dataclasses import replace
from typing import Any

from support.extender.cluster import NOW, allocation, cluster, job, node_object, share, worker
from synergy_api.cluster.pool import Pool
from synergy_api.cluster.pools import node_capacities
from synergy_api.resources.gpu_pool import GPUPoolSpec
from synergy_core.model import snapshot as core
from synergy_extender.cluster.pod_index import PodIndex
from synergy_extender.cluster.quota_views import counted, read_quota
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import Key, PodView, read_pod
from synergy_extender.colocation.devices import shares_of
from synergy_extender.snapshot.quotas import NamespaceQuotas
from synergy_extender.snapshot.snapshot import build_snapshot

MIG = "nvidia.com/mig-1g.10gb"


def asking(name: str, requests: dict[str, str], node: str = "n1") -> PodView:
    metadata = {"name": name, "namespace": "other", "uid": f"uid-{name}"}
    return read_pod(
        {"metadata": metadata, "spec": {"nodeName": node, "containers": [{"resources": {"requests": requests}}]}}
    )


def mixed_node() -> dict[str, Any]:
    """One whole GPU and seven of a profile."""
    made = node_object("n1")
    made["status"]["allocatable"] |= {"nvidia.com/gpu": "1", MIG: "7"}
    return made


def of_profile(*pods: PodView, jobs: Any = ()) -> ClusterState:
    """A cluster whose pool plans the profile."""
    nodes = [mixed_node()]
    spec = {"gpuType": "H100-1g", "nodeSelector": {}, "devices": {"resource": MIG}}
    spec["nodeSelector"] = dict(list(nodes[0]["metadata"]["labels"].items())[:1])
    capacities = node_capacities(nodes, [Pool("p", GPUPoolSpec.model_validate(spec))])
    state = cluster(nodes, jobs, pods)
    state.pods.count({one.name: one.gpu_resources for one in capacities})
    return replace(state, capacities=capacities)


def test_pods_of_a_node_hold_what_its_pool_plans() -> None:
    index = PodIndex([asking("a", {MIG: "2", "nvidia.com/gpu": "1"}), asking("b", {MIG: "3"}, "n2")])
    assert (index.held("n1").gpus, index.held("n2").gpus) == (1, 0), "NVIDIA's whole GPUs count by themselves"
    index.count({"n1": (MIG,)})
    assert (index.held("n1").gpus, index.held("n2").gpus) == (2, 0)
    index.put(asking("c", {MIG: "1"}))
    assert index.held("n1").gpus == 3
    assert index.copy().counted(asking("d", {MIG: "4"})).requests.gpus == 4
    index.count({})
    assert index.held("n1").gpus == 1
    for name in "abc":
        index.drop(Key("other", name))
    assert not list(index.nodes())


def test_a_plan_has_the_profiles_that_others_leave_and_no_whole_gpu() -> None:
    state = of_profile(asking("a", {MIG: "2"}), asking("b", {"nvidia.com/gpu": "1"}), jobs=[job("w", gpus=3)])
    (node,) = build_snapshot(state, mode="round", now=NOW, round_s=20).snapshot.nodes
    assert (node.gpus, node.gpus_used, node.gpu_type, node.counted_as) == (7, 2, "H100-1g", MIG)


def test_a_place_tells_its_pods_what_to_ask_for() -> None:
    state = of_profile()
    place = core.Allocation(
        job="team/w", gpu_type="H100-1g", workers=(core.NodeShare(node="n1", gpus=3, cpu_millis=1, memory_bytes=1),),
        steps_per_s=1.0, proportional_steps_per_s=1.0,
    )  # fmt: skip
    (given,) = shares_of(place, {one.name: one for one in state.capacities})
    assert (given.gpus, given.devices, given.resource) == (3, None, MIG)


def test_quotas_count_a_resource_by_its_name() -> None:
    hard = {f"requests.{MIG}": "4", "requests.nvidia.com/gpu": "8", "requests.storage": "1Gi", "pods": "9"}
    view = read_quota({"metadata": {"namespace": "team", "name": "q"}, "spec": {"hard": hard}})
    assert view.hard == {f"requests.{MIG}": 4, "requests.nvidia.com/gpu": 8, "pods": 9}
    assert {name: counted(name) for name in view.hard} == {
        f"requests.{MIG}": MIG,
        "requests.nvidia.com/gpu": "gpus",
        "pods": "objects",
    }
    running = job(
        "r", gpus=2, status={"phase": "Running", "allocation": allocation({**share("n1", 2), "resource": MIG})}
    )
    state = replace(of_profile(jobs=[running]), quotas=(view,))
    asked = NamespaceQuotas(state).asked(running, running.status.allocation.workers, profile=False)  # type: ignore[union-attr]
    assert asked["team/q", f"requests.{MIG}"] == 2
    assert ("team/q", "requests.nvidia.com/gpu") not in asked


def test_workers_of_a_run_hold_what_they_ask_for() -> None:
    given = allocation({**share("n1", 2), "resource": MIG}, admitted=True)
    running = job("r", gpus=2, status={"phase": "Running", "allocation": given})
    bound = replace(worker("r", node="n1", gpus=0), extended={MIG: 2})
    state = of_profile(bound, jobs=[running])
    (node,) = build_snapshot(state, mode="round", now=NOW, round_s=20).snapshot.nodes
    assert node.gpus_used == 0, "the plan may move it"
    assert state.pods.held("n1").gpus == 2
