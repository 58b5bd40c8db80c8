"""ResourceQuotas as the extender reads them, matches them to jobs and counts what these hold."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from support.extender.cluster import NOW, allocation, cluster, job, key, node_object, share, worker
from support.extender.shared import shared_cluster
from synergy_extender.cluster.quota_views import PodScopes, QuotaView, Scope, pod_scopes, read_quota
from synergy_extender.cluster.state import ClusterState
from synergy_extender.snapshot.quotas import FreeQuotas, NamespaceQuotas
from synergy_extender.snapshot.snapshot import build_snapshot

GPUS = "requests.nvidia.com/gpu"


def quota(hard: Mapping[str, Any], used: Mapping[str, Any] | None = None, **spec: Any) -> QuotaView:
    counted = {"hard": dict(hard), "used": dict(used or {})}
    return read_quota({"metadata": {"name": "q", "namespace": "team"}, "spec": {"hard": {}, **spec}, "status": counted})


def with_quotas(state: ClusterState, *quotas: QuotaView, services: Iterable[str] = ()) -> ClusterState:
    return replace(state, quotas=quotas, services=frozenset(key(name) for name in services))


def test_amounts_are_read_as_the_api_server_counts_them() -> None:
    read = quota(
        {GPUS: "4", "requests.cpu": "1500m", "limits.memory": "1Gi", "pods": "10", "secrets": "3"}, {GPUS: "1"}
    )
    assert read.hard == {GPUS: 4, "requests.cpu": 1500, "limits.memory": 1 << 30, "pods": 10}
    assert read.used == {GPUS: 1}
    assert str(read) == "team/q"


def test_before_it_was_counted_its_spec_says_what_it_allows() -> None:
    fresh = read_quota({"metadata": {"name": "q", "namespace": "team"}, "spec": {"hard": {"pods": "2"}}})
    assert (fresh.hard, fresh.used) == ({"pods": 2}, {})


PLAIN = PodScopes()
ENDS = PodScopes(terminating=True)
NAMED = PodScopes(priority_class="high")
CROSSES = PodScopes(crosses_namespaces=True)


@pytest.mark.parametrize(
    ("scope", "pod", "counts"),
    [
        (Scope("NotTerminating"), PLAIN, True),
        (Scope("NotTerminating"), ENDS, False),
        (Scope("Terminating"), ENDS, True),
        (Scope("Terminating"), PLAIN, False),
        (Scope("BestEffort"), PLAIN, False),
        (Scope("NotBestEffort"), PLAIN, True),
        (Scope("PriorityClass"), PLAIN, True),
        (Scope("PriorityClass", "In", ("worker",)), PLAIN, True),
        (Scope("PriorityClass", "In", ("worker",)), NAMED, False),
        (Scope("PriorityClass", "NotIn", ("worker",)), NAMED, True),
        (Scope("PriorityClass", "NotIn", ("worker",)), PLAIN, False),
        (Scope("PriorityClass", "DoesNotExist"), PLAIN, False),
        (Scope("CrossNamespacePodAffinity"), PLAIN, False),
        (Scope("CrossNamespacePodAffinity"), CROSSES, True),
        (Scope("VolumeAttributesClass", "In", ("x",)), PLAIN, False),
    ],
)
def test_scopes_match_as_kubernetes_matches_them(scope: Scope, pod: PodScopes, counts: bool) -> None:
    assert QuotaView("team", "q", {"pods": 1}, {}, (scope,)).counts(pod, "worker") is counts


def test_without_a_priority_class_in_the_cluster_no_class_is_matched() -> None:
    view = QuotaView("team", "q", {"pods": 1}, {}, (Scope("PriorityClass"),))
    assert not view.counts(PLAIN, "")
    nobody = QuotaView("team", "q", {"pods": 1}, {}, (Scope("PriorityClass", "DoesNotExist"),))
    assert nobody.counts(PLAIN, "")


def test_all_scopes_of_a_quota_must_match() -> None:
    both = quota(
        {"pods": "1"},
        scopes=["NotTerminating"],
        scopeSelector={"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]},
    )
    assert both.counts(NAMED, "")
    assert not both.counts(replace(NAMED, terminating=True), "")
    assert not both.counts(PLAIN, "")


def test_what_scopes_go_by_is_read_from_the_template() -> None:
    term = {"topologyKey": "x", "namespaces": ["other"]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}
    sidecar = {"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "3", "memory": "1Gi"}}}
    found = pod_scopes(
        {
            "priorityClassName": "high",
            "activeDeadlineSeconds": 5,
            "affinity": {"podAntiAffinity": preferred},
            "containers": [{"resources": {"limits": {"cpu": "64"}}}, sidecar],
        }
    )
    assert (found.priority_class, found.terminating, found.crosses_namespaces) == ("high", True, True)
    assert found.limits_beside[1:] == (2000, 0), "limits stand for requests that are not given"
    assert pod_scopes({"affinity": {"podAffinity": required}}).crosses_namespaces
    selector = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "x", "namespaceSelector": {}}]}
    assert pod_scopes({"affinity": {"podAffinity": selector}}).crosses_namespaces
    assert pod_scopes({"containers": 7, "affinity": "odd"}) == PodScopes()


def test_a_job_of_one_gpu_has_no_service_to_count() -> None:
    state = with_quotas(
        cluster([node_object("n1")], [job("one", gpus=1), job("two", gpus=2)], []), quota({"services": "9"}, {})
    )
    snapshot = build_snapshot(state, mode="round", now=NOW, round_s=20).snapshot
    assert {one.name: dict(one.quotas[0].once) for one in snapshot.jobs} == {
        "team/one": {},
        "team/two": {"services": 1},
    }


def test_a_plan_counts_with_what_others_hold_and_not_with_what_its_running_jobs_do() -> None:
    running = job(
        "r", gpus=2, status={"phase": "Running", "allocation": allocation(share("n1", gpus=2), admitted=True)}
    )
    pod = worker("r", node="n1", gpus=2)
    waits = job("w", gpus=4)
    state = cluster([node_object("n1")], [running, waits], [pod])
    hard = {GPUS: "8", "pods": "5", "services": "2"}
    state = with_quotas(state, quota(hard, {GPUS: "5", "pods": "4", "services": "1"}), services=["r"])
    snapshot = build_snapshot(state, mode="round", now=NOW, round_s=20).snapshot
    (found,) = snapshot.quotas
    assert {limit.resource: (limit.hard, limit.used) for limit in found.limits} == {
        GPUS: (8, 3),
        "pods": (5, 3),
        "services": (2, 1),
    }
    draws = {one.name: one.quotas[0] for one in snapshot.jobs}
    assert (draws["team/w"].once, draws["team/w"].per_pod) == ({"services": 1}, {"pods": 1})
    assert (draws["team/r"].once, draws["team/r"].per_pod) == ({}, {"pods": 1})


@pytest.mark.parametrize(("mode", "used"), [("round", 1), ("fill", 3)])
def test_who_leaves_gives_its_quota_to_the_next_round_and_holds_it_between_rounds(mode: Any, used: int) -> None:
    leaves = allocation(share("n1", gpus=2), admitted=True, state="Revoked")
    leaving = job("r", gpus=2, status={"phase": "Yielding", "allocation": leaves})
    state = cluster([node_object("n1")], [leaving], [worker("r", node="n1", gpus=2)])
    state = with_quotas(state, quota({GPUS: "8"}, {GPUS: "3"}))
    (found,) = build_snapshot(state, mode=mode, now=NOW, round_s=20).snapshot.quotas
    assert found.limits[0].used == used


def test_devices_of_shared_gpus_are_counted_by_their_name() -> None:
    state = with_quotas(shared_cluster([job("w")], renamed=True), quota({"requests.nvidia.com/gpu.shared": "2"}))
    snapshot = build_snapshot(state, mode="round", now=NOW, round_s=20).snapshot
    assert snapshot.quotas[0].limits[0].counts == "shared_gpus"
    assert (snapshot.nodes[0].counted_as, snapshot.nodes[0].devices_per_gpu) == ("shared_gpus", 2)


def test_quotas_of_another_namespace_do_not_count() -> None:
    elsewhere = replace(quota({"pods": "0"}), namespace="other")
    state = with_quotas(cluster([node_object("n1")], [job("w")]), elsewhere)
    (found,) = build_snapshot(state, mode="round", now=NOW, round_s=20).snapshot.jobs
    assert found.quotas == ()


def test_a_new_run_takes_what_is_free_and_granted_runs_come_first() -> None:
    granted = job("g", gpus=2, status={"phase": "Starting", "allocation": allocation(share("n1", gpus=2))})
    waits = job("w", gpus=2)
    state = cluster([node_object("n1")], [granted, waits])
    assert granted.status.allocation is not None
    shares = granted.status.allocation.workers
    for hard, fits in ((3, False), (4, True)):
        free = FreeQuotas(with_quotas(state, quota({GPUS: str(hard)}, {GPUS: "0"})))
        assert free.take(waits, shares, profile=False) is fits
        assert free.take(waits, shares, profile=False) is False, "it is taken once"


def test_an_open_run_grows_as_far_as_its_quota_has_room() -> None:
    place = share("n1", gpus=2)
    running = job("r", gpus=2, status={"phase": "Running", "allocation": allocation(place, admitted=True)})
    state = cluster([node_object("n1")], [running], [worker("r", node="n1", gpus=2, cpu="1")])
    assert running.status.allocation is not None
    now = running.status.allocation.workers
    more = [one.model_copy(update={"cpu_millis": one.cpu_millis + 1000}) for one in now]
    used = now[0].cpu_millis
    assert FreeQuotas(with_quotas(state, quota({"limits.cpu": f"{used + 1000}m"}, {"limits.cpu": f"{used}m"}))).grow(
        running, now, more
    )
    assert not FreeQuotas(with_quotas(state, quota({"limits.cpu": f"{used + 999}m"}, {"limits.cpu": f"{used}m"}))).grow(
        running, now, more
    )
    assert not NamespaceQuotas(state)
