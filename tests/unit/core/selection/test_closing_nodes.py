"""Nodes that must be empty by a moment: what is there leaves in time, nothing comes for less than a round."""

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.planner import promises
from support.planner.planning import holding, job, node, places, reasons
from support.planner.snapshots import configs, snapshots
from synergy_core.explain.preemptions import Preemption, PreemptionRule, preemptions
from synergy_core.model.answer import Plan
from synergy_core.model.config import Mode, PlanConfig
from synergy_core.model.snapshot import FieldError, Job, Node, Snapshot
from synergy_core.model.snapshot_format import parse_snapshot, snapshot_document
from synergy_core.plan import plan

often = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
ROUND_S = 300.0


def at(now: float, nodes: list[Node], *jobs: Job, mode: Mode = "round") -> Plan:
    cluster = Snapshot(nodes=tuple(nodes), jobs=jobs, now=now, round_s=ROUND_S)
    return plan(cluster, PlanConfig(policy="fifo", mechanism="tune", mode=mode))


RUNS = job("a", 4, running=holding("a", ("n1", 4, 12, 250)))


def test_a_job_stays_until_the_last_end_of_a_round_before_it_must_be_gone() -> None:
    nodes = [node("n1", empty_by=1000.0), node("n2")]
    assert places(at(700.0, nodes, RUNS)) == {"a": {"n1": 4}}
    moved = at(701.0, nodes, RUNS)
    assert places(moved) == {"a": {"n2": 4}}
    assert list(moved.preempted) == ["a"]
    assert places(at(5000.0, nodes, RUNS)) == {"a": {"n2": 4}}, "a drained node stays closed"


@pytest.mark.parametrize("further", [[], [node("n2")]])
def test_it_is_recorded_that_the_node_is_why(further: list[Node]) -> None:
    """No other job has its GPUs: neither the policy nor a move ended the run, and no budget counts it."""
    cluster = Snapshot(nodes=(node("n1", empty_by=1000.0), *further), jobs=(RUNS,), now=701.0, round_s=ROUND_S)
    found = plan(cluster, PlanConfig(policy="fifo", mechanism="tune"))
    assert preemptions(cluster, found, across=False) == (Preemption("a", PreemptionRule.NODE),)


def test_between_rounds_it_stays_and_nobody_joins_it() -> None:
    nodes = [node("n1", empty_by=1000.0)]
    found = at(800.0, nodes, RUNS, job("b", 1), mode="fill")
    assert places(found) == {"a": {"n1": 4}}
    assert set(reasons(found)) == {"b"}


def test_without_another_place_it_waits() -> None:
    found = at(800.0, [node("n1", empty_by=1000.0)], RUNS)
    assert places(found) == {}
    assert reasons(found) == {"a": "NoAllowedNode"}


def test_a_job_that_is_never_preempted_and_a_profile_run_stay() -> None:
    never = replace(RUNS, preemptible=False)
    profile = job(
        "p", 1, purpose="profile", cpu_millis_min=1000, memory_bytes_min=1 << 30, running=holding("p", ("n1", 1, 1, 1))
    )
    nodes = [node("n1", empty_by=1000.0), node("n2")]
    found = places(at(800.0, nodes, never, profile, job("b", 1, running=holding("b", ("n1", 1, 3, 60)))))
    assert found == {"a": {"n1": 4}, "p": {"n1": 1}, "b": {"n2": 1}}


def test_the_field_is_read_and_written() -> None:
    cluster = Snapshot(nodes=(node("n1", empty_by=1000.0, reopens_at=2000.0), node("n2")), jobs=())
    document = snapshot_document(cluster)
    assert [one.get("empty_by") for one in document["nodes"]] == [1000.0, None]
    assert "empty_by" not in document["nodes"][1]

    assert parse_snapshot(json.dumps(document)) == cluster


def test_after_a_maintenance_the_node_takes_jobs_again() -> None:
    nodes = [node("n1", empty_by=1000.0, reopens_at=2000.0)]
    assert places(at(1999.0, nodes, job("a", 4))) == {}
    assert places(at(2000.0, nodes, job("a", 4))) == {"a": {"n1": 4}}


@pytest.mark.parametrize("times", [{"reopens_at": 5.0}, {"empty_by": 6.0, "reopens_at": 5.0}])
def test_a_maintenance_ends_after_it_has_begun(times: dict[str, float]) -> None:
    with pytest.raises(FieldError, match="reopens_at: must not be before empty_by"):
        node("n1", **times)


@st.composite
def closing(draw: st.DrawFn, clusters: st.SearchStrategy[Snapshot]) -> Snapshot:
    """A cluster some of whose nodes must be empty: long ago, within the round, and much later."""
    cluster = draw(clusters)
    times = st.sampled_from((None, -1e6, cluster.now + cluster.round_s / 2, cluster.now + 1e6))
    return replace(cluster, nodes=tuple(replace(one, empty_by=draw(times)) for one in cluster.nodes))


@often
@given(closing(snapshots(disturbed=True)), configs)
def test_no_plan_leaves_or_brings_a_job_where_it_would_have_to_go(cluster: Snapshot, config: PlanConfig) -> None:
    found = plan(cluster, config)
    fill = config.mode == "fill"
    promises.nothing_over_allocated(cluster, found, fill=fill)
    promises.every_job_once(cluster, found)
    promises.newcomers_only_where_allowed(cluster, found)
    closed = {
        one.name for one in cluster.nodes if one.empty_by is not None and one.empty_by < cluster.now + cluster.round_s
    }
    jobs = {one.name: one for one in cluster.jobs}
    for place in found.allocations:
        if closed.isdisjoint(share.node for share in place.workers):
            continue
        running = jobs[place.job].running
        assert running is not None
        assert {(w.node, w.gpus) for w in place.workers} == {(w.node, w.gpus) for w in running.workers}
        assert fill or not jobs[place.job].preemptible or jobs[place.job].purpose == "profile"


@often
@given(snapshots(), configs)
def test_nodes_that_close_much_later_change_nothing(cluster: Snapshot, config: PlanConfig) -> None:
    later = tuple(replace(one, empty_by=cluster.now + 1e6) for one in cluster.nodes)
    assert plan(replace(cluster, nodes=later), config) == plan(cluster, config)
