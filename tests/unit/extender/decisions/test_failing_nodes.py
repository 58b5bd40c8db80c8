"""Nodes that keep failing jobs take none, and after a while one as a trial."""

from dataclasses import replace
from typing import Any

from support.extender.cluster import NOW, allocation, cluster, job, node_object, share
from support.extender.deciding import AT_PLAN, MID_ROUND, allocated, decided, only, place, plan
from synergy_api.reasons import ENTRIES, Reason, ReasonPlace
from synergy_api.resources.scheduling_policy import FailingNodes, SchedulingPolicySpec
from synergy_api.timestamps import format_time
from synergy_extender.cluster.revocation import Revocation
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView
from synergy_extender.decisions.changes import ChangeKind
from synergy_extender.metrics import Metrics
from synergy_extender.planning.conditions import news, pool_statuses
from synergy_extender.planning.future import planned_snapshot
from synergy_extender.planning.measures import measure
from synergy_extender.planning.policy import PolicyInForce
from synergy_extender.snapshot.failing import without_failing_nodes

OPTIONS = FailingNodes(jobs=2, within_seconds=6000, retry_seconds=1000)


def failed(name: str, at: float) -> JobView:
    failures = [{"node": "n1", "run": 1, "at": format_time(at)}]
    status: dict[str, Any] = {"phase": "Failed", "service": {"run": 1, "endedRun": 1, "nodeFailures": failures}}
    return job(name, status=status)


def state(*jobs: JobView, ago: float) -> ClusterState:
    """Two jobs failed on n1 so many seconds before the plan."""
    failures = [failed(name, AT_PLAN.now - ago) for name in ("f", "g")]
    seen = cluster([node_object("n1"), node_object("n2")], [*failures, *jobs])
    return without_failing_nodes(seen, OPTIONS, AT_PLAN.now)


def test_no_job_is_placed_on_an_avoided_node() -> None:
    seen = state(job("j"), ago=10)
    assert not decided(seen, AT_PLAN, plan(place("j", ("n1", 1, 1000)))).changes
    built = planned_snapshot(
        cluster([node_object("n1"), node_object("n2")], seen.jobs.values()),
        PolicyInForce(SchedulingPolicySpec(failing_nodes=OPTIONS)),
        "round",
        AT_PLAN.now,
    )
    assert [node.schedulable for node in built.snapshot.nodes] == [False, True]


def test_what_runs_there_stays_and_what_has_not_begun_leaves() -> None:
    runs = job("r", status={"phase": "Running", "allocation": allocation(share("n1"), until=NOW + 60)})
    waits = job("w", status={"allocation": allocation(share("n1"), admitted=False)})
    changes = {one.job.key.name: one for one in decided(state(runs, waits, ago=10), MID_ROUND).changes}
    assert "r" not in changes or allocated(changes["r"]).state == "Granted"
    assert allocated(changes["w"]).reason == Revocation.NODE_UNUSABLE


def test_of_two_jobs_that_a_plan_gives_a_node_on_trial_one_enters() -> None:
    seen = state(job("a"), job("b"), ago=1000)
    made = plan(place("a", ("n1", 1, 1000)), place("b", ("n1", 1, 1000)))
    change = only(decided(seen, AT_PLAN, made))
    assert (change.kind, change.job.key.name) == (ChangeKind.ENTER, "a")


def test_the_trial_keeps_its_place_until_it_is_admitted() -> None:
    trial = job("t", status={"allocation": allocation(share("n1"), admitted=False)})
    seen = state(trial, ago=1000)
    assert seen.failing["n1"].probe == "team/t"
    assert [c.schedulable for c in seen.capacities] == [False, True]
    (change,) = decided(seen, MID_ROUND).changes
    assert (allocated(change).state, allocated(change).admitted) == ("Granted", True)


def test_with_the_option_off_all_is_as_before() -> None:
    seen = cluster([node_object("n1")], [failed("f", NOW), failed("g", NOW)])
    assert without_failing_nodes(seen, FailingNodes(jobs=0), AT_PLAN.now) is seen


def test_pools_tell_of_their_failing_nodes_and_that_all_is_well_again() -> None:
    pool = {"metadata": {"name": "p", "generation": 1, "uid": "u"}, "spec": {"gpuType": "V100", "nodeSelector": {}}}
    seen = state(ago=10)
    own = replace(seen, capacities=[replace(one, pool="p") for one in seen.capacities])
    status = pool_statuses([pool], own, [], NOW)["p"]
    (failing,) = status.failing_nodes
    assert (failing.node, failing.state, failing.jobs) == ("n1", "Avoided", 2)
    condition = status.conditions[1]
    assert (condition.type, condition.status, condition.reason) == ("NodesReliable", "False", "NodeAvoided")
    assert ReasonPlace.POOL_NODES in ENTRIES[Reason(condition.reason)].places
    assert "2 jobs failed on node n1 (team/f, team/g)" in condition.message
    told = {**pool, "status": status.to_wire()}
    again = pool_statuses([told], replace(own, failing={}), [], NOW + 9)["p"]
    assert (again.failing_nodes, again.conditions[1].status, again.conditions[1].reason) == (
        [],
        "True",
        "NodesReliable",
    )
    well = news(told, again.conditions)
    assert well is not None
    assert well.reason is Reason.NODES_RELIABLE
    assert [one.type for one in pool_statuses([pool], replace(own, failing={}), [], NOW)["p"].conditions] == ["Valid"]


def test_failing_nodes_are_counted() -> None:
    metrics = Metrics()
    measure(metrics, state(ago=10), NOW)
    states = {
        word: metrics.registry.get_sample_value("kube_synergy_failing_nodes", {"state": word})
        for word in ("avoided", "retrying", "probing", "reported")
    }
    assert states == {"avoided": 1, "retrying": 0, "probing": 0, "reported": 0}
