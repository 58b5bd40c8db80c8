"""How far requests for nodes have come, what follows from them, and what a pool says of them."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.extender.cluster import GI, NOW, cluster, job, node_object
from synergy_api import names
from synergy_api.cluster.failing_nodes import avoiding
from synergy_api.reasons import ENTRIES, ReasonPlace
from synergy_api.timestamps import format_time
from synergy_core.model.answer import Growth
from synergy_core.model.config import PlanConfig
from synergy_core.plan import plan
from synergy_core.selection.failing_nodes import FailingNode, FailingState
from synergy_extender.cluster.node_requests.request import NodeRequest, read_request
from synergy_extender.cluster.state import ClusterState
from synergy_extender.decisions.queue import queue_of
from synergy_extender.growth.bodies import pod_template, provisioning_request, request_name
from synergy_extender.growth.follow import Ask, Refused, asks, over, pool_finding
from synergy_extender.planning.conditions import pool_statuses
from synergy_extender.snapshot.node_groups import growing, node_groups, request_states
from synergy_extender.snapshot.snapshot import build_snapshot

SELECTOR = {"pool": "cloud"}


def pool_object(**more: Any) -> dict[str, Any]:
    how = {"maxNodes": 4, "node": {"gpus": 8, "cpu": "24", "memory": "96Gi"}, **more}
    spec = {"nodeSelector": SELECTOR, "gpuType": "V100", "autoscaling": how, "pricePerHour": 2.5}
    return {"metadata": {"name": "cloud", "generation": 1, "uid": "u"}, "spec": spec}


def request(name: str = "r1", nodes: int = 2, created: float = NOW, **more: Any) -> NodeRequest:
    return NodeRequest(name, "cloud", nodes, created, **more)


def born(name: str, at: float, **more: Any) -> dict[str, Any]:
    node = node_object(name, **more)
    node["metadata"] |= {"labels": dict(SELECTOR), "creationTimestamp": format_time(at)}
    return node


def state(*requests: NodeRequest, nodes: Any = (), jobs: Any = (), **pool: Any) -> ClusterState:
    return cluster(nodes, jobs, pools=[pool_object(**pool)], requests=requests)


def test_a_request_is_read_as_the_autoscaler_reports_it() -> None:
    item = provisioning_request(pool_object(), growing(state())[0][1], "r1", 3, 2)
    item["metadata"]["creationTimestamp"] = format_time(NOW)
    assert read_request(item) == request("r1", 3, failures=2)
    at = format_time(NOW + 5)

    def told(kind: str, status: str = "True", **more: str) -> NodeRequest | None:
        condition = {"type": kind, "status": status, "lastTransitionTime": at, **more}
        return read_request({**item, "status": {"conditions": [condition]}})

    assert told("Accepted") == request("r1", 3, failures=2)
    assert told("Provisioned") == request("r1", 3, failures=2, provisioned=True)
    assert told("Failed", "False") == request("r1", 3, failures=2)
    failed = request("r1", 3, failures=2, failed_at=NOW + 5, problem="no quota")
    assert told("Failed", reason="X", message="no quota") == failed
    assert told("CapacityRevoked", reason="Gone") == replace(failed, problem="Gone")


@pytest.mark.parametrize("broken", [{"spec": {}}, {"spec": {"podSets": [{"count": "x"}]}}, {"metadata": {"name": "r"}}])
def test_what_is_no_request_of_ours_is_left_alone(broken: dict[str, Any]) -> None:
    item = provisioning_request(pool_object(), growing(state())[0][1], "r1", 3, 0)
    item["metadata"]["creationTimestamp"] = format_time(NOW)
    assert read_request({**item, **broken}) is None


def test_nodes_that_come_count_for_the_oldest_request() -> None:
    nodes = [
        born("old", NOW - 1),
        born("a", NOW + 20),
        born("b", NOW + 30),
        born("c", NOW + 40),
        born("starts", NOW + 40, ready=False),
        born("no-gpu-yet", NOW + 40, gpus=0),
    ]
    states = request_states(state(request("r1", 2), request("r2", 2, NOW + 35), nodes=nodes), NOW + 50)["cloud"]
    assert [(one.request.name, one.missing, one.open) for one in states] == [("r1", 0, False), ("r2", 1, True)]


def test_a_request_that_takes_too_long_has_failed_and_each_failure_doubles_the_wait() -> None:
    waits = []
    for failures in (0, 1, 2, 5, 6, 99):
        (late,) = request_states(state(request(failures=failures)), NOW + 900)["cloud"]
        assert (late.failed_at, late.failures) == (NOW + 900, failures + 1)
        assert late.retry_at is not None
        waits.append(late.retry_at - NOW - 900)
    assert waits == [60, 120, 240, 1920, 3600, 3600]
    (young,) = request_states(state(request()), NOW + 899)["cloud"]
    assert (young.open, young.retry_at, young.failures) == (True, None, 0)


def test_the_planner_knows_the_pool_with_what_is_promised() -> None:
    failed = request("r0", 1, NOW - 5, failed_at=NOW, failures=1)
    nodes = [born("n1", NOW - 99), born("n2", NOW - 99, ready=False)]
    (group,) = node_groups(state(failed, request("r1", 2), nodes=nodes), NOW + 10)
    assert (group.name, group.gpu_type, group.gpus, group.price_per_hour) == ("GPUPool/cloud", "V100", 8, 2.5)
    assert (group.cpu_millis, group.memory_bytes, group.nodes, group.max_nodes) == (24000, 96 * GI, 2, 4)
    assert (group.waiting_s, group.not_before) == (60.0, NOW + 120)
    assert [(one.name, one.nodes, one.at) for one in group.promises] == [("r1", 2, NOW + 300)]
    (later,) = node_groups(state(failed, request("r1", 2), nodes=nodes), NOW + 301)
    assert (later.not_before, later.promises[0].at) == (None, NOW + 900), "later than usual: the latest moment is told"


def test_system_reserved_is_taken_off_new_nodes_as_off_others() -> None:
    item = pool_object()
    item["spec"]["systemReserved"] = {"cpu": "4", "memory": "200Gi"}
    (group,) = node_groups(cluster([], pools=[item], requests=[]), NOW)
    assert (group.cpu_millis, group.memory_bytes) == (20000, 1), "what is reserved twice over is no negative amount"


@pytest.mark.parametrize(
    ("sharing", "devices", "gpus", "expected"),
    [
        ({"mode": "MPS", "replicas": 4, "preference": "Packed"}, {}, 8, (4, "gpus")),
        ({"mode": "MPS", "replicas": 4}, {}, 8, (1, "gpus")),
        ({"mode": "MPS", "replicas": 4}, {}, 1, (4, "gpus")),
        ({}, {"resource": "amd.com/gpu"}, 8, (1, "amd.com/gpu")),
    ],
)
def test_quotas_count_new_nodes_as_others(
    sharing: dict[str, Any], devices: dict[str, Any], gpus: int, expected: tuple[int, str]
) -> None:
    item = pool_object(node={"gpus": gpus, "cpu": "24", "memory": "96Gi"})
    item["spec"] |= {"sharing": sharing, "devices": devices}
    (group,) = node_groups(cluster([], pools=[item], requests=[]), NOW)
    assert (group.devices_per_gpu, group.counted_as) == expected


def test_nodes_of_another_devices_plugin_are_asked_for_by_its_resource() -> None:
    item = pool_object()
    item["spec"]["devices"] = {"resource": "amd.com/gpu"}
    pool, how = growing(cluster([], pools=[item], requests=[]))[0]
    spec = pod_template(item, pool, how)["template"]["spec"]
    assert spec["containers"][0]["resources"]["limits"] == {"amd.com/gpu": "8"}
    assert {"key": "amd.com/gpu", "operator": "Exists"} in spec["tolerations"], "as workers tolerate it"


def test_a_node_that_keeps_failing_jobs_has_come() -> None:
    """It takes no job for now. Its request must not fail for that, and no further node is on its way."""
    failing = FailingNode(
        node="a", state=FailingState.AVOIDED, jobs=("x", "y", "z"), last_failure_at=NOW, retry_at=NOW + 9
    )
    found = state(request("r1", 2), nodes=[born("a", NOW + 1), born("b", NOW + 2, ready=False)])
    avoided = replace(found, capacities=avoiding(found.capacities, {"a": failing}), failing={"a": failing})
    (one,) = request_states(avoided, NOW + 5)["cloud"]
    assert one.missing == 1


def test_no_group_grows_where_nodes_may_not_be_asked_for() -> None:
    off = replace(state(), grows=False)
    assert node_groups(off, NOW) == ()
    assert build_snapshot(off, mode="round", now=NOW, round_s=20).snapshot.node_groups == ()
    (status,) = pool_statuses([pool_object()], off, [], NOW).values()
    assert [one.reason for one in status.conditions] == ["NodesFound", "AutoscalingOff"]


def test_templates_bind_new_nodes_as_they_bind_others() -> None:
    def nodes_of(template: dict[str, Any], **pool: Any) -> tuple[str, ...] | None:
        found = state(nodes=[born("n1", NOW)], jobs=[job(template=template)], **pool)
        (one,) = build_snapshot(found, mode="round", now=NOW, round_s=20).snapshot.jobs
        return one.nodes

    assert nodes_of({}) is None
    assert nodes_of({"nodeSelector": SELECTOR}) is None
    assert nodes_of({"nodeSelector": {"zone": "a"}}) == ()
    assert nodes_of({}, taints=[{"key": "spot"}]) == ("n1",)
    tolerant = {"tolerations": [{"key": "spot", "operator": "Exists"}]}
    assert nodes_of(tolerant, taints=[{"key": "spot"}]) is None


def test_a_job_that_waits_asks_and_is_told_when_the_nodes_are_expected() -> None:
    def planned(*requests: NodeRequest) -> Any:
        found = state(*requests, jobs=[job(gpus=8)])
        built = build_snapshot(found, mode="round", now=NOW + 10, round_s=20)
        return found, plan(built.snapshot, PlanConfig())

    found, first = planned()
    assert first.growth == (Growth("GPUPool/cloud", 1, ("team/j",)),)
    assert asks(first.growth, found, NOW) == [Ask("cloud", 1, 0)]
    found, second = planned(request(nodes=1))
    assert second.growth == ()
    (queue,) = queue_of(second, found.jobs, (), {}).values()
    assert queue.reason == "NodesPromised"
    assert queue.message.endswith(f"They are expected at {format_time(NOW + 300)}.")


def test_the_next_request_knows_how_many_have_failed() -> None:
    failed = request("r0", 1, NOW - 500, failed_at=NOW - 400, failures=2)
    growth = (Growth("GPUPool/cloud", 1, ()), Growth("GPUPool/gone", 1, ()))
    assert asks(growth, state(failed), NOW) == [Ask("cloud", 1, 3)]


def test_requests_are_deleted_once_they_are_over() -> None:
    done = request("done", 1)
    failed = request("failed", 1, NOW - 10, failed_at=NOW)
    assert over(state(done, nodes=[born("n", NOW)]), (), NOW) == ["done"]
    assert over(state(failed), (), NOW + 119) == [], "the next failure must wait longer"
    assert over(state(failed), (), NOW + 120) == ["failed"]
    assert over(state(failed, request("newer")), (), NOW + 61) == ["failed"]
    assert over(state(request()), {"r1"}, NOW + 59) == []
    assert over(state(request()), {"r1"}, NOW + 60) == ["r1"]
    assert over(state(request(provisioned=True)), {"r1"}, NOW + 60) == [], "its nodes are on their way"
    assert over(state(replace(request(), pool="other")), (), NOW) == ["r1"], "its pool grows no more"


def test_the_pool_says_how_its_growth_goes() -> None:
    def told(*requests: NodeRequest, now: float = NOW, refused: Refused | None = None) -> tuple[str, bool, str]:
        found = state(*requests)
        finding, well = pool_finding(request_states(found, now)["cloud"], refused, now, grows=True)
        assert ReasonPlace.POOL_GROWTH in ENTRIES[finding.reason].places
        return finding.reason.value, well, finding.message

    assert told() == ("NoNodesAskedFor", True, "no node is asked for")
    assert told(request(), request("r2", 1)) == ("NodesAskedFor", True, "nodes are asked for: 3")
    reason, well, message = told(request(failed_at=NOW, problem="no quota"), now=NOW + 59)
    assert (reason, well) == ("NodesNotProvided", False)
    assert message.startswith(
        "2 nodes that were asked for did not come: no quota. Failure 1 in a row; no node is asked"
    )
    assert f"before {format_time(NOW + 60)}" in message
    assert told(request(failed_at=NOW), now=NOW + 60)[0] == "NoNodesAskedFor"
    refused = Refused("404 Not Found", NOW + 60)
    assert told(refused=refused, now=NOW + 59)[:2] == ("NodeRequestRefused", False)
    assert told(refused=refused, now=NOW + 60)[:2] == ("NoNodesAskedFor", True)


def test_the_pools_status_counts_what_is_asked_for() -> None:
    found = state(request(nodes=3), nodes=[born("n", NOW + 1)])
    item = pool_object()
    (status,) = pool_statuses([item], found, [], NOW + 2).values()
    assert (status.nodes, status.nodes_asked_for, status.nodes_idle) == (1, 2, 0)
    assert [one.type for one in status.conditions] == ["Valid", "Autoscaling"]
    assert pool_statuses([{**item, "status": status.to_wire()}], found, [], NOW + 9) == {}


def test_the_objects_that_ask_have_one_pod_for_each_node() -> None:
    item = pool_object(taints=[{"key": "spot", "value": "yes"}])
    item["spec"]["sharing"] = {"mode": "MPS", "replicas": 2}
    pool, how = growing(cluster([], pools=[item], requests=[]))[0]
    template = pod_template(item, pool, how)
    spec = template["template"]["spec"]
    assert spec["nodeSelector"] == SELECTOR
    assert spec["containers"][0]["resources"]["requests"] == {"nvidia.com/gpu": "16"}, "the device plugin's devices"
    assert {"key": "spot", "operator": "Exists", "effect": "NoSchedule"} in spec["tolerations"]
    assert {"key": "nvidia.com/gpu", "operator": "Exists"} in spec["tolerations"]
    asked = provisioning_request(item, how, "r", 3, 1)
    assert asked["spec"]["podSets"] == [{"podTemplateRef": {"name": "kube-synergy-cloud"}, "count": 3}]
    assert asked["spec"]["parameters"] == {"ValidUntilSeconds": "900"}
    for one in (template, asked):
        assert one["metadata"]["labels"] == {names.LABEL_POOL: "cloud"}
        assert one["metadata"]["ownerReferences"][0]["kind"] == "GPUPool"
    assert len(request_name("x" * 253, NOW)) <= 253


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 50)), max_size=5),
    st.lists(st.integers(-10, 60), max_size=8),
)
def test_each_node_counts_for_one_request(asked: list[tuple[int, int]], births: list[int]) -> None:
    requests = [request(f"r{at:02}", nodes, NOW + at) for nodes, at in asked]
    requests = [replace(one, name=f"{one.name}-{index}") for index, one in enumerate(requests)]
    requests.sort(key=lambda one: (one.created, one.name))
    nodes = [born(f"n{index}", NOW + at) for index, at in enumerate(births)]
    states = request_states(state(*requests, nodes=nodes), NOW + 60)["cloud"]
    came = sum(one.request.nodes - one.missing for one in states)
    first = min((one.created for one in requests), default=NOW)
    assert came <= sum(NOW + at >= first for at in births)
    assert all(0 <= one.missing <= one.request.nodes for one in states)


@pytest.mark.parametrize(
    ("gpu_types", "taints", "admitted"),
    [
        (["V100"], [], None),
        (["V100"], [{"key": "mine", "effect": "NoSchedule"}], ("n1",)),
        (["T4"], [{"key": "mine", "effect": "NoSchedule"}], None),
        ([], [{"key": "mine", "effect": "NoSchedule"}], ("n1", "n2")),
    ],
)
def test_new_nodes_count_for_jobs_that_may_use_their_gpu_type(
    gpu_types: list[str], taints: list[dict[str, str]], admitted: tuple[str, ...] | None
) -> None:
    nodes = [node_object("n1"), node_object("n2", gpu_type="T4")]
    found = state(nodes=nodes, jobs=[job("j", spec={"gpuTypes": gpu_types})], taints=taints)
    (wish,) = build_snapshot(found, mode="round", now=NOW, round_s=20).snapshot.jobs
    assert wish.nodes == admitted
