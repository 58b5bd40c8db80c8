"""The observer keeps pods by node and by gang. What it sees is what a look at all pods finds."""

from collections import defaultdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from support.on_cluster.observer import Observer
from synergy_kube import Change, KubeClient

Pod = dict[str, Any]
NODES = {
    name: {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "nvidia.com/gpu": "2"}}}
    for name in ("n1", "n2")
}
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["a-1-0", "a-1-1", "a-2-0", "b-1-0", "other"]),
        st.sampled_from(["gone", "gated", "free", "n1", "n2"]),
        st.sampled_from(["Pending", "Running", "Succeeded"]),
        st.booleans(),
    ),
    max_size=30,
)


class _Nodes:
    def get(self, _: str, name: str) -> Pod:
        return NODES[name]


def pod(name: str, place: str, phase: str, *, going: bool) -> Pod:
    parts = [*name.split("-"), ""]
    labels = {"kube-synergy.dev/role": "worker", "kube-synergy.dev/job": parts[0], "kube-synergy.dev/run": parts[1]}
    requests = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
    spec: Pod = {"containers": [{"name": "c", "resources": {"requests": requests}}]}
    if place == "gated":
        spec["schedulingGates"] = [{"name": "g"}]
    elif place in NODES:
        spec["nodeName"] = place
    metadata = {"name": name, "namespace": "n", "labels": labels if name != "other" else {}}
    return {
        "metadata": {**metadata, **({"deletionTimestamp": "2027-01-01T00:00:00Z"} if going else {})},
        "spec": spec,
        "status": {"phase": phase},
    }


def over_allocated(pods: dict[str, Pod], node: str) -> bool:
    bound = [one for one in pods.values() if one["spec"].get("nodeName") == node]
    return sum(one["status"]["phase"] != "Succeeded" for one in bound) > 2


def half_bound(pods: dict[str, Pod]) -> set[tuple[str, str, str]]:
    gangs: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for name, one in pods.items():
        going = "deletionTimestamp" in one["metadata"]
        if name == "other" or going or one["status"]["phase"] == "Succeeded" or "schedulingGates" in one["spec"]:
            continue
        job, run, _ = name.split("-")
        gangs["n", job, run].append("nodeName" in one["spec"])
    return {gang for gang, bound in gangs.items() if any(bound) and not all(bound)}


@given(STEPS)
async def test_what_it_keeps_by_differences_is_what_a_look_at_all_pods_finds(
    steps: list[tuple[str, str, str, bool]],
) -> None:
    observer = Observer(KubeClient.__new__(KubeClient))  # its changes come from here
    observer._nodes = _Nodes()  # type: ignore[assignment]
    pods: dict[str, Pod] = {}
    for name, place, phase, going in steps:
        old, new = pods.get(name), None if place == "gone" else pod(name, place, phase, going=going)
        if old is None and new is None:
            continue
        if new is None:
            del pods[name]
        else:
            pods[name] = new
        before = len(observer.broken)
        observer._pod_changed(Change(("n", name), old, new))
        node = new["spec"].get("nodeName") if new is not None else None
        assert (len(observer.broken) > before) == (node is not None and over_allocated(pods, node))
        assert set(observer._half_bound_since) == half_bound(pods)
