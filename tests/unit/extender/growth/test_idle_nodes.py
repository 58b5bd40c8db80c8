"""What autoscalers are told of nodes."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from support.extender.cluster import NOW, allocation, cluster, foreign, job, node_object, share, worker
from synergy_api import names
from synergy_api.cluster.nodes import Object
from synergy_api.timestamps import format_time
from synergy_core.model import snapshot as core
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.trims import MARKS, facts_of_node, trim_node
from synergy_extender.growth.idle import IN_USE, in_use, is_idle, node_patch, wanted_marks

SELECTOR = {"pool": "cloud"}
POOL = {
    "metadata": {"name": "cloud"},
    "spec": {
        "nodeSelector": SELECTOR,
        "gpuType": "V100",
        "autoscaling": {"maxNodes": 9, "node": {"gpus": 8, "cpu": "24", "memory": "96Gi"}, "idleSeconds": 100},
    },
}


def node(name: str, marks: dict[str, str] | None = None, labels: dict[str, str] | None = None) -> Object:
    item = node_object(name)
    given_labels = {name: value for name, value in (marks or {}).items() if name == names.LABEL_IDLE}
    item["metadata"] |= {"labels": {**(SELECTOR if labels is None else labels), **given_labels}}
    item["metadata"]["annotations"] = {k: v for k, v in (marks or {}).items() if k != names.LABEL_IDLE}
    return trim_node(item)


def state(*nodes: Object, **more: Any) -> ClusterState:
    return cluster(nodes, pools=[POOL], requests=[], **more)


def idle_for(seconds: float, **more: str) -> dict[str, str]:
    return {names.ANNOTATION_IDLE_SINCE: format_time(NOW - seconds), **more}


def test_nodes_with_a_run_a_pod_a_binding_or_a_plan_are_in_use() -> None:
    held = job("held", status={"allocation": allocation(share("n1"), share("n2"))})
    pods = [worker("gone", node="n3"), foreign("theirs", node="n4", gpus=1), foreign("daemon", node="n5")]
    place = core.Allocation(
        job="j", gpu_type="V100", workers=(core.NodeShare(node="n6", gpus=1, cpu_millis=1, memory_bytes=1),)
    )
    found = state(*(node(f"n{index}") for index in range(1, 9)), jobs=[held], pods=pods)
    assert in_use(found, ["n7"], [place]) == {"n1", "n2", "n3", "n4", "n6", "n7"}


def test_a_node_with_a_claim_of_others_is_in_use() -> None:
    """Their pods ask for no extended resource (DRA)."""
    found = state(node("n1"), node("n2"))
    found.pods.claim({"n2": 1})
    assert in_use(found, [], []) == {"n2"}


def test_a_node_that_falls_idle_is_kept_for_a_while_and_then_told_idle() -> None:
    def wanted(marks: dict[str, str], used: set[str] | None = None) -> Any:
        return wanted_marks(state(node("n", marks)), used or set(), NOW)["n"]

    assert wanted({}) == {names.ANNOTATION_IDLE_SINCE: format_time(NOW), **IN_USE}
    assert wanted(idle_for(99)) == {**idle_for(99), **IN_USE}
    idle = wanted(idle_for(100))
    assert idle == {**idle_for(100), names.LABEL_IDLE: "true"}
    assert is_idle(idle)
    assert wanted(idle, {"n"}) == IN_USE
    assert wanted(idle_for(-50))[names.ANNOTATION_IDLE_SINCE] == format_time(NOW), "a clock that was ahead"
    assert wanted({names.ANNOTATION_IDLE_SINCE: "soon"})[names.ANNOTATION_IDLE_SINCE] == format_time(NOW)


def test_nodes_of_other_pools_are_left_alone_and_former_ones_are_cleaned() -> None:
    old = node(
        "old", idle_for(500, **{names.LABEL_IDLE: "true"}), labels={"pool": "other", "nvidia.com/gpu.product": "V100"}
    )
    theirs = node("theirs", dict(IN_USE), labels={"nvidia.com/gpu.product": "V100"})
    assert wanted_marks(state(old, theirs), set(), NOW) == {"old": {}}


def test_marks_are_applied_as_labels_and_annotations() -> None:
    marks = idle_for(100, **{names.LABEL_IDLE: "true"})
    patch = node_patch(marks)["metadata"]
    assert patch == {"labels": {names.LABEL_IDLE: "true"}, "annotations": idle_for(100)}
    kept = node("n", marks)
    assert kept[MARKS] == marks
    assert facts_of_node(kept) == facts_of_node(node("n")), "no plan depends on them"


@given(
    st.sets(st.sampled_from(("n1", "n2", "n3"))),
    st.lists(st.integers(-10, 300), min_size=3, max_size=3),
    st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_no_node_in_use_is_told_idle_and_marks_settle(used: set[str], ages: list[int], labelled: list[bool]) -> None:
    nodes = [
        node(f"n{index + 1}", idle_for(age, **({names.LABEL_IDLE: "true"} if told else {})))
        for index, (age, told) in enumerate(zip(ages, labelled, strict=True))
    ]
    wanted = wanted_marks(state(*nodes), used, NOW)
    assert all(wanted[name] == IN_USE for name in used)
    again = wanted_marks(state(*(node(name, dict(marks)) for name, marks in wanted.items())), used, NOW)
    assert again == wanted
