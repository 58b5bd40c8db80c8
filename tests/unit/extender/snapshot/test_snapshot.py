"""What the planner is told of the cluster."""

import json
from dataclasses import replace
from typing import Any

import pytest

from support.extender.cluster import (
    GI,
    NOW,
    allocation,
    cluster,
    foreign,
    job,
    job_object,
    key,
    node_object,
    pod_object,
    share,
    team_of,
    worker,
    worker_labels,
)
from synergy_api.cluster.pool import read_pools
from synergy_api.cluster.pools import node_capacities
from synergy_api.program import model
from synergy_api.resources.scheduling_policy import SchedulingPolicySpec
from synergy_api.timestamps import format_time
from synergy_core.model import snapshot as core
from synergy_core.model.config import Mode, PlanConfig
from synergy_core.model.snapshot_format import parse_snapshot, snapshot_document
from synergy_core.plan import plan
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.trims import trim_node
from synergy_extender.cluster.views import read_job, read_pod
from synergy_extender.snapshot.snapshot import build_snapshot
from synergy_extender.snapshot.used_room import OVERDUE_SECONDS
from synergy_extender.tenants.planned import tenants_of

MATRIX = {"gpuType": "V100", "cpuMillis": [1000, 3000], "memoryBytes": [GI], "stepsPerSecond": [[1.0], [2.0]]}
KWOK = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
REQUEST = {"gpuType": "V100", "gpus": 1, "cpuMillis": 12_000, "memoryBytes": 8 * GI}


def built(state: ClusterState, mode: Mode = "round", **more: Any) -> core.Snapshot:
    return build_snapshot(state, mode=mode, now=NOW, round_s=20, **more).snapshot


def used(snapshot: core.Snapshot, name: str = "n1") -> tuple[int, int, int]:
    node = next(n for n in snapshot.nodes if n.name == name)
    return node.gpus_used, node.cpu_millis_used, node.memory_bytes_used


def test_a_queued_job_is_told_with_all_that_the_planner_reads() -> None:
    spec = {
        "gpuTypes": ["V100"],
        "weight": 2.0,
        "sharing": {"allowed": True},
        "preemption": "Never",
        "placement": "Consolidate",
        "tenant": "vision",
        "slo": {"deadline": format_time(NOW + 60)},
        "batchSize": 64,
        "resources": {"min": {"cpu": "500m", "memory": "1Gi"}, "max": {"cpu": "4"}},
    }
    service = {"attainedGPUSeconds": 30.0, "receivedSeconds": {"V100": 30.0}}
    status = {"profile": {"state": "Complete", "matrices": [MATRIX]}, "progress": {"run": 1, "steps": 7}}
    allowed = team_of("vision", maxWeight=2, maxNeverPreemptedGPUs=1, deadlines="Allowed")
    one = job("j", spec=spec, status={**status, "service": service})
    snapshot = built(cluster([node_object("n1")], [one], tenancy=allowed))
    assert snapshot.jobs == (
        core.Job(
            name="team/j",
            gpus=1,
            arrival_s=NOW - 100,
            weight=2.0,
            tenant="vision",
            deadline_s=NOW + 60,
            gpu_types=("V100",),
            profiles={"V100": core.Profile(cpu_millis=(1000, 3000), memory_bytes=(GI,), steps_per_s=((1.0,), (2.0,)))},
            steps_total=1000,
            steps_done=7,
            attained_gpu_s=30.0,
            waiting_s=70.0,
            received_s={"V100": 30.0},
            model=model(job_object("j")["spec"]["template"], gpus=1, batch_size=64),
            batch_size=64,
            sharing=True,
            preemptible=False,
            cpu_millis_min=500,
            cpu_millis_max=4000,
            memory_bytes_min=GI,
            placement="consolidate",
        ),
    )
    assert (snapshot.now, snapshot.round_s) == (NOW, 20.0)


def test_prices_and_tenants_come_from_pools_and_policy() -> None:
    pool = {"nodeSelector": {"nvidia.com/gpu.product": "V100"}, "gpuType": "V100", "pricePerHour": 2.5}
    pools, _ = read_pools([{"metadata": {"name": "p"}, "spec": pool}])
    nodes = [node_object("n1"), node_object("n2", gpu_type="T4")]
    state = replace(cluster(nodes, []), capacities=node_capacities(nodes, pools))
    tenants = [{"name": "vision", "weight": 2, "policy": "fifo"}, {"name": "speech"}]
    spec = SchedulingPolicySpec.model_validate({"policy": "hierarchical", "tenants": tenants})
    snapshot = built(state, tenants=tenants_of(spec))
    assert [(node.name, node.price_per_hour) for node in snapshot.nodes] == [("n1", 2.5), ("n2", 0.0)]
    assert snapshot.tenants == (core.Tenant("vision", 2.0, "fifo"), core.Tenant("speech"))


def test_tenants_that_the_policy_does_not_name_stand_beside_those_that_it_names() -> None:
    state = cluster([node_object("n1")], [job("a"), job("b", spec={"tenant": "vision"})])
    snapshot = built(state, tenants=(core.Tenant("vision", 2.0),))
    others = {one.tenant for one in snapshot.jobs} - {"vision"}
    assert others
    assert snapshot.tenants == (core.Tenant("vision", 2.0), *(core.Tenant(name) for name in sorted(others)))
    assert parse_snapshot(json.dumps(snapshot_document(snapshot))) == snapshot
    assert built(state).tenants == ()


def test_a_deadline_that_is_none_keeps_one_job_from_being_planned() -> None:
    spec = {"slo": {"deadline": "soon"}}
    made = build_snapshot(
        cluster([node_object("n1")], [job("j", spec=spec), job("k")]), mode="round", now=NOW, round_s=20
    )
    assert [one.name for one in made.snapshot.jobs] == ["team/k"]
    assert made.refused[key("j")].message.startswith("spec.slo.deadline: 'soon' is not an RFC 3339 time")


@pytest.mark.parametrize(
    ("profile", "types"), [({"mode": "Provided", "matrices": [MATRIX]}, ["V100"]), ({"mode": "Skip"}, [])]
)
def test_a_provided_matrix_counts_at_once_and_skip_means_none(profile: dict[str, Any], types: list[str]) -> None:
    (wish,) = built(cluster([node_object("n1")], [job("j", spec={"profile": profile})])).jobs
    assert list(wish.profiles) == types


def test_a_running_job_holds_what_the_plan_last_gave_it_even_if_it_is_still_to_grow() -> None:
    grows = allocation(share("n1", cpu_millis=1000), planned=[share("n1", cpu_millis=3000)], stepsPerSecond=2.0)
    (wish,) = built(cluster([node_object("n1")], [job("j", status={"allocation": grows})])).jobs
    assert wish.running == core.Allocation(
        job="team/j",
        gpu_type="V100",
        workers=(core.NodeShare(node="n1", gpus=1, cpu_millis=3000, memory_bytes=GI),),
        steps_per_s=2.0,
    )


def test_pods_of_others_are_used_and_those_of_planned_runs_are_not() -> None:
    state = cluster(
        [node_object("n1")],
        [job("j", status={"allocation": allocation(share("n1"))})],
        [worker("j", node="n1", gpus=1, cpu="1"), foreign("x", node="n1", gpus=2, cpu="3", memory="1Gi")],
    )
    assert used(built(state)) == (2, 3000, GI)


def test_pods_of_a_job_that_is_gone_or_of_an_older_run_are_used_until_they_are_gone() -> None:
    state = cluster(
        [node_object("n1")],
        [job("j", status={"allocation": allocation(share("n1"), run=2), "service": {"endedRun": 1}})],
        [worker("gone", node="n1", gpus=1), worker("j", run=1, node="n1", gpus=1)],
    )
    assert used(built(state))[0] == 2


def test_a_run_that_leaves_is_absent_from_a_round_plan_and_used_in_a_fill_plan() -> None:
    leaving = job("j", status={"allocation": allocation(share("n1", gpus=4), state="Revoked"), "phase": "Yielding"})
    state = cluster([node_object("n1")], [leaving], [worker("j", node="n1", gpus=4, cpu="4")])
    assert (built(state, "round").jobs, used(built(state, "round"))) == ((), (0, 0, 0))
    assert (built(state, "fill").jobs, used(built(state, "fill"))) == ((), (4, 4000, 0))


def test_a_run_that_never_leaves_is_used_in_round_plans_too() -> None:
    stuck = allocation(share("n1", gpus=4), state="Revoked", until=NOW - OVERDUE_SECONDS - 1)
    state = cluster([node_object("n1")], [job("j", status={"allocation": stuck})], [worker("j", node="n1", gpus=4)])
    assert used(built(state, "round"))[0] == 4


def test_room_promised_to_a_run_that_is_not_admitted_is_not_counted_twice() -> None:
    leaving = job("old", status={"allocation": allocation(share("n1", gpus=4), state="Revoked")})
    entering = job("new", gpus=3, status={"allocation": allocation(share("n1", gpus=3), admitted=False)})
    state = cluster([node_object("n1")], [leaving, entering], [worker("old", node="n1", gpus=4, cpu="2")])
    snapshot = built(state, "fill")
    assert [j.name for j in snapshot.jobs] == ["team/new"]
    assert used(snapshot) == (1, 1000, 0)  # 4 leave, 3 of them are promised; 2 CPU leave, 1 is promised


def test_a_place_kept_for_a_job_that_moves_is_held_in_fill_plans_only() -> None:
    place = core.Allocation(
        job="team/j",
        gpu_type="V100",
        workers=(core.NodeShare(node="n2", gpus=4, cpu_millis=4000, memory_bytes=GI),),
    )
    moving = job("j", gpus=4, status={"allocation": allocation(share("n1", gpus=4), state="Revoked")})
    state = cluster([node_object("n1"), node_object("n2")], [moving], [worker("j", node="n1", gpus=4)])
    fill = built(state, "fill", reserved={key("j"): place})
    assert [j.running for j in fill.jobs] == [place]
    assert used(fill)[0] == 4
    assert built(state, "round", reserved={key("j"): place}).jobs == ()


def test_who_may_not_be_planned_is_not_told() -> None:
    retry = {"service": {"retryAt": format_time(NOW + 10)}}
    state = cluster(
        [node_object("n1")],
        [job("a", spec={"suspend": True}), job("b", status=retry), job("c", status={"phase": "Succeeded"})],
    )
    assert built(state).jobs == ()


def test_a_job_that_contradicts_itself_is_refused_by_name_and_stops_nobody() -> None:
    bad = job("bad", spec={"resources": {"min": {"cpu": "4"}, "max": {"cpu": "1"}}})
    result = build_snapshot(cluster([node_object("n1")], [bad, job("good")]), mode="round", now=NOW, round_s=20)
    assert [j.name for j in result.snapshot.jobs] == ["team/good"]
    assert "cpu_millis_min" in result.refused[key("bad")].message


def test_what_a_refused_running_job_was_given_stays_used() -> None:
    held = {"allocation": allocation(share("n1", gpus=2, cpu_millis=2000))}  # the spec has one GPU: they contradict
    state = cluster([node_object("n1")], [job("bad", status=held)], [worker("bad", node="n1", gpus=1, cpu="3")])
    assert used(built(state)) == (2, 3000, GI)


def test_a_taint_that_only_some_templates_tolerate_keeps_the_others_away() -> None:
    tolerant = job("t", template={"tolerations": [{"key": KWOK["key"], "operator": "Exists"}]})
    nodes = [node_object("n1"), node_object("n2", taints=[KWOK])]
    wishes = built(cluster(nodes, [tolerant, job("plain")], tolerated=[KWOK["key"]])).jobs
    assert {wish.name: wish.nodes for wish in wishes} == {"team/plain": ("n1",), "team/t": None}


def test_what_a_template_admits_counts_among_the_gpu_types_that_the_job_may_use() -> None:
    unknown = node_object("n0")
    unknown["metadata"]["labels"] = {}
    nodes = [unknown, node_object("n1"), node_object("n2", gpu_type="T4", taints=[KWOK])]
    jobs = [job("v100", spec={"gpuTypes": ["V100"]}), job("t4", spec={"gpuTypes": ["T4"]}), job("any")]
    wishes = built(cluster(nodes, jobs, tolerated=[KWOK["key"]])).jobs
    assert {wish.name: wish.nodes for wish in wishes} == {"team/v100": None, "team/t4": (), "team/any": ("n1",)}


@pytest.mark.parametrize("shared", [False, True])
def test_a_profile_run_of_a_type_that_the_job_does_not_name_stays_where_its_template_is_admitted(shared: bool) -> None:
    nodes = [node_object("n1", taints=[KWOK]), node_object("n2", gpu_type="T4")]
    request = {"gpuType": "V100", "gpus": 1, "cpuMillis": 1000, "memoryBytes": GI, "shared": shared}
    status = {"phase": "Profiling", "profile": {"state": "Waiting", "request": request}}
    state = cluster(nodes, [job("p", spec={"gpuTypes": ["T4"]}, status=status)], tolerated=[KWOK["key"]])
    assert [one.nodes for one in built(state).jobs] in ([], [()])


def test_running_jobs_that_may_use_the_same_nodes_share_the_list() -> None:
    nodes = [node_object("n1"), node_object("n2"), node_object("n3", taints=[KWOK])]
    jobs = [job(name, status={"allocation": allocation(share(node))}) for name, node in (("a", "n1"), ("b", "n2"))]
    one, other = built(cluster(nodes, jobs, tolerated=[KWOK["key"]])).jobs
    assert one.nodes == ("n1", "n2")
    assert one.nodes is other.nodes


def test_a_running_job_may_stay_where_its_template_would_no_longer_be_admitted() -> None:
    nodes = [node_object("n1"), node_object("n2", taints=[KWOK])]
    held = {"allocation": allocation(share("n2"))}
    (wish,) = built(cluster(nodes, [job("j", status=held)], tolerated=[KWOK["key"]])).jobs
    assert wish.nodes == ("n1", "n2")


def test_nodes_of_unknown_type_are_left_out_and_cordoned_ones_are_not_schedulable() -> None:
    unknown = node_object("n0")
    unknown["metadata"]["labels"] = {}
    snapshot = built(cluster([unknown, node_object("n1", unschedulable=True)]))
    assert [(n.name, n.schedulable) for n in snapshot.nodes] == [("n1", False)]


def profiling(**status: Any) -> Any:
    return job(
        "p", gpus=4, status={"phase": "Profiling", "profile": {"state": "Waiting", "request": REQUEST}, **status}
    )


def test_a_profile_series_asks_for_a_fixed_place() -> None:
    (wish,) = built(cluster([node_object("n1")], [profiling()])).jobs
    assert (wish.purpose, wish.gpus, wish.gpu_types, wish.preemptible) == ("profile", 1, ("V100",), False)
    assert (wish.cpu_millis_min, wish.memory_bytes_min, wish.running) == (12_000, 8 * GI, None)


def test_a_profile_request_is_cut_to_what_the_best_node_has_beside_pods_of_others() -> None:
    nodes = [node_object("n1", cpu=8), node_object("n2", cpu=10), node_object("n3", cpu=64, gpu_type="T4")]
    (wish,) = built(cluster(nodes, [profiling()], [foreign("ds", node="n2", cpu="1")])).jobs
    assert wish.cpu_millis_min == 9000


@pytest.mark.parametrize(("asked_gib", "want_gib"), [(4, 4), (8, 7), (12, 11)])
def test_profile_series_leave_memory_for_those_on_the_other_gpus(asked_gib: int, want_gib: int) -> None:
    """Of 16 GiB on two GPUs foreign pods hold 2: a share is 7, and what is asked beyond a share shrinks by their 1."""
    status = {"profile": {"state": "Waiting", "request": {**REQUEST, "memoryBytes": asked_gib * GI}}}
    pods = [foreign("ds", node="n1", memory="2Gi")]
    (wish,) = built(cluster([node_object("n1", gpus=2, memory_gib=16)], [profiling(**status)], pods)).jobs
    assert wish.memory_bytes_min == want_gib * GI


FORGED: dict[str, dict[str, Any]] = {
    "another node": {"name": "own-1-1", "node": "n2"},
    "another name": {"name": "mine", "node": "n1"},
    "more ranks than GPUs": {"name": "own-1-1", "rank": 1, "node": "n1"},
    "another role": {"name": "own-1-1", "role": "profile", "node": "n1"},
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED.keys())
@pytest.mark.parametrize("mode", ["round", "fill"])
def test_what_a_pod_with_the_labels_of_a_run_holds_is_not_free(mode: Mode, forged: dict[str, Any]) -> None:
    """Its owner can write any label. Others were planned there, in vain, again and again."""
    own = job("own", status={"allocation": allocation(share("n1", gpus=1))})
    labels = worker_labels("own", rank=forged.get("rank", 0), role=forged.get("role", "worker"))
    pod = read_pod(pod_object(forged["name"], labels=labels, node=forged["node"], gpus=7, cpu="20"))
    nodes = [node_object("n1"), node_object("n2")]
    state = cluster(nodes, [own], [worker("own", node="n1", gpus=1), pod])
    assert used(built(state, mode), forged["node"]) == (7, 20_000, 0)


@pytest.mark.parametrize("mode", ["round", "fill"])
def test_of_a_managed_object_s_pods_one_for_each_rank_is_the_run_s_own(mode: Mode) -> None:
    managed = {"apiVersion": "batch/v1", "kind": "Job", "name": "own"}
    own = job("own", spec={"managed": managed}, status={"allocation": allocation(share("n1", gpus=1))})
    labels = worker_labels("own")
    pods = [read_pod(pod_object(f"own-{n}", labels=labels, node="n1", gpus=1, cpu="1")) for n in ("a", "b")]
    alone, forged = cluster([node_object("n1")], [own], pods[:1]), cluster([node_object("n1")], [own], pods)
    assert used(built(alone, mode))[0] == 0
    assert used(built(forged, mode))[0] == 1


def test_a_managed_object_s_pod_gives_no_more_cpu_back_than_the_run_was_given() -> None:
    managed = {"apiVersion": "batch/v1", "kind": "Job", "name": "own"}
    given = share("n1", gpus=1, cpu_millis=2000)
    own = job("own", spec={"managed": managed}, status={"allocation": allocation(given)})
    pod = read_pod(pod_object("own-a", labels=worker_labels("own"), node="n1", gpus=1, cpu="20"))
    assert used(built(cluster([node_object("n1")], [own], [pod])))[:2] == (0, 18_000)


def test_a_pod_in_a_worker_s_place_gives_no_more_gpus_back_than_the_run_was_given() -> None:
    own = job("own", status={"allocation": allocation(share("n1", gpus=1))})
    state = cluster([node_object("n1")], [own], [worker("own", node="n1", gpus=8)])
    assert used(built(state))[0] == 7


def test_a_profile_series_waits_for_those_who_leave_rather_than_measure_less() -> None:
    leaving = job("old", status={"allocation": allocation(share("n1", gpus=1), state="Revoked")})
    state = cluster([node_object("n1", cpu=12)], [profiling(), leaving], [worker("old", node="n1", gpus=1, cpu="6")])
    assert built(state, "fill").jobs == ()
    assert [j.cpu_millis_min for j in built(state, "round").jobs] == [12_000]


@pytest.mark.parametrize(
    ("seconds_late", "want"),
    [(-1e8, [6000]), (-600, []), (-20, []), (OVERDUE_SECONDS - 1, []), (OVERDUE_SECONDS + 1, [6000])],
)
@pytest.mark.parametrize("mode", ["round", "fill"])
def test_a_profile_series_waits_for_pods_of_others_that_end_but_not_for_ever(
    mode: Mode, seconds_late: float, want: list[int]
) -> None:
    ends = foreign("ends", node="n1", cpu="6", deleting_at=NOW - seconds_late)
    wishes = built(cluster([node_object("n1", cpu=12)], [profiling()], [ends]), mode).jobs
    assert [wish.cpu_millis_min for wish in wishes] == want


def test_a_profile_series_does_not_wait_for_a_pod_with_the_labels_of_a_job_that_has_no_run() -> None:
    pods = [worker("idle", node="n1", gpus=1, cpu="6")]
    wishes = built(cluster([node_object("n1", cpu=12)], [profiling(), job("idle")], pods)).jobs
    assert [wish.cpu_millis_min for wish in wishes if wish.purpose == "profile"] == [6000]


@pytest.mark.parametrize(("seconds_late", "want"), [(1, 12_000), (OVERDUE_SECONDS + 1, 6000)])
def test_a_run_that_does_not_leave_cuts_what_a_profile_series_asks_for(seconds_late: float, want: int) -> None:
    lease = {"leaseUntil": format_time(NOW - seconds_late), "state": "Revoked"}
    leaving = job("old", status={"allocation": allocation(share("n1", gpus=1), **lease)})
    state = cluster([node_object("n1", cpu=12)], [profiling(), leaving], [worker("old", node="n1", gpus=1, cpu="6")])
    assert [wish.cpu_millis_min for wish in built(state).jobs] == [want]


@pytest.mark.parametrize(
    ("preemption", "cap", "want"), [("Never", 1, 6000), ("Never", 0, 12_000), ("Signal", 1, 12_000)]
)
def test_a_profile_series_asks_for_no_more_than_jobs_leave_that_never_give_way(
    preemption: str, cap: int, want: int
) -> None:
    """They may hold their place for weeks, and a job that is not measured does not start."""
    holds = job("old", spec={"preemption": preemption}, status={"allocation": allocation(share("n1", gpus=1))})
    tenancy = team_of("vision", maxNeverPreemptedGPUs=cap)
    pods = [worker("old", node="n1", gpus=1, cpu="6")]
    state = cluster([node_object("n1", cpu=12)], [profiling(), holds], pods, tenancy=tenancy)
    assert [wish.cpu_millis_min for wish in built(state).jobs if wish.purpose == "profile"] == [want]


def test_a_running_profile_series_keeps_exactly_its_place() -> None:
    held = {"allocation": allocation(share("n1", cpu_millis=9000), purpose="Profile")}
    (wish,) = built(cluster([node_object("n1")], [profiling(**held)])).jobs
    assert wish.running is not None
    assert (wish.purpose, wish.gpus, wish.cpu_millis_min) == ("profile", 1, 9000)


def test_the_snapshot_survives_its_file_format() -> None:
    state = cluster(
        [node_object("n1"), node_object("n2", unschedulable=True)],
        [job("a"), profiling(), job("r", status={"allocation": allocation(share("n1"))})],
        [foreign("x", node="n1", gpus=2)],
    )
    snapshot = built(state, "fill")
    assert parse_snapshot(json.dumps(snapshot_document(snapshot))) == snapshot


SIDE = {"name": "side", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
FETCH = {"name": "fetch", "resources": {"limits": {"cpu": "2"}}}


def test_what_runs_beside_the_training_is_the_least_that_each_worker_gets() -> None:
    template = {"containers": [{"name": "train"}, SIDE], "initContainers": [FETCH]}
    pair = job("j", gpus=4, spec={"gpusPerWorker": 2}, template=template)
    (planned,) = built(cluster([node_object("n1")], [pair])).jobs
    assert (planned.cpu_millis_min, planned.memory_bytes_min) == (4000, 2 * (GI + 1))
    more = job("j", spec={"resources": {"min": {"cpu": "3", "memory": "4Gi"}}}, template=template)
    (planned,) = built(cluster([node_object("n1")], [more])).jobs
    assert (planned.cpu_millis_min, planned.memory_bytes_min) == (3000, 4 * GI)
    (planned,) = built(cluster([node_object("n1")], [job("j")])).jobs
    assert (planned.cpu_millis_min, planned.memory_bytes_min) == (0, 0)


@pytest.mark.parametrize(
    "template",
    [
        {"initContainers": "fetch"},
        {"initContainers": [{"resources": {}}]},
        {"containers": [{"name": "train"}, {"name": "side", "resources": {"limits": {"cpu": "lots"}}}]},
        {"containers": [{"name": "train"}, {"name": "side", "resources": "many"}]},
    ],
)
def test_a_template_that_is_no_pod_s_does_not_keep_the_cluster_from_being_read(template: dict[str, Any]) -> None:
    (planned,) = built(cluster([node_object("n1")], [job("j", template=template)])).jobs
    assert (planned.cpu_millis_min, planned.memory_bytes_min) == (0, 0)


@pytest.mark.parametrize(("leaving_s", "expected"), [(0.0, (NOW + 60, None)), (45.0, (NOW + 15, None))])
def test_a_node_that_must_be_empty_has_its_time_less_that_of_a_checkpoint(
    leaving_s: float, expected: tuple[float, None]
) -> None:
    drained = node_object("n1")
    drained["metadata"]["annotations"] = {"kube-synergy.dev/empty-by": format_time(NOW + 60), "noise": "1"}
    (found,) = built(cluster([drained], []), leaving_s=leaving_s).nodes
    assert (found.empty_by, found.reopens_at) == expected
    assert trim_node(drained)["metadata"]["annotations"] == {"kube-synergy.dev/empty-by": format_time(NOW + 60)}
    assert "annotations" not in trim_node(node_object("n2"))["metadata"]


def test_a_time_that_cannot_be_read_ends_no_run_of_the_node() -> None:
    """Nor is the node told as one without GPUs: the plan would end what runs there, for a typing error."""
    drained = node_object("n1")
    drained["metadata"]["annotations"] = {"kube-synergy.dev/empty-by": "tomorrow"}
    status = {"phase": "Running", "allocation": allocation(share("n1", 4))}
    running = read_job(job_object("j", gpus=4, status=status))
    snapshot = built(cluster([drained], [running, job("new", gpus=1)], [worker("j", node="n1", gpus=4)]))
    found = plan(snapshot, PlanConfig())
    assert [one.job for one in found.allocations] == ["team/j"]
