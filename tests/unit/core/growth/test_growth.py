"""Which nodes a plan asks for, and what it tells jobs that wait for them."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.planner.planning import GIB, holding, job, node, places, reasons
from synergy_core.model.answer import Growth, Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import (
    FieldError,
    Job,
    Node,
    NodeGroup,
    Promise,
    Quota,
    QuotaDraw,
    QuotaLimit,
    Snapshot,
    Tenant,
)
from synergy_core.model.snapshot_format import SnapshotError, parse_snapshot, plan_document, snapshot_document
from synergy_core.plan import plan

NOW = 1000.0


def group(name: str = "cloud", gpus: int = 4, most: int = 8, **more: Any) -> NodeGroup:
    shape = {"cpu_millis": gpus * 3000, "memory_bytes": gpus * 60 * GIB, "gpu_type": "V100"}
    return NodeGroup(name=name, gpus=gpus, max_nodes=most, **{**shape, **more})


def asked(
    jobs: list[Job], groups: list[NodeGroup], nodes: list[Node] | None = None, **more: Any
) -> tuple[Plan, tuple[Growth, ...]]:
    tenants = more.pop("tenants", ())
    there = [node("n", 2, cpus=6, gib=120)] if nodes is None else nodes
    snapshot = Snapshot(nodes=tuple(there), jobs=tuple(jobs), node_groups=tuple(groups), now=NOW, tenants=tenants)
    result = plan(snapshot, PlanConfig(**{"policy": "fifo", **more}))
    return result, result.growth


def test_a_job_that_fits_now_asks_for_nothing() -> None:
    _, growth = asked([job("a", 2)], [group()])
    assert growth == ()


def test_a_job_that_waits_asks_for_the_nodes_that_it_needs() -> None:
    result, growth = asked([job("a", 2, arrival_s=0.0), job("b", 8, arrival_s=1.0)], [group()])
    assert growth == (Growth("cloud", 2, ("b",)),)
    assert places(result) == {"a": {"n": 2}}, "nothing is bound to a node that is not there"


def test_small_jobs_share_one_new_node() -> None:
    waiting = [job(f"w{index}", 1, arrival_s=1.0 + index) for index in range(4)]
    assert asked([job("a", 2), *waiting], [group()])[1] == (Growth("cloud", 1, ("w0", "w1", "w2", "w3")),)


def test_a_group_grows_from_no_node_at_all() -> None:
    assert asked([job("a", 4)], [group()], [])[1] == (Growth("cloud", 1, ("a",)),)


def test_a_gang_that_the_most_nodes_do_not_hold_asks_for_none() -> None:
    result, growth = asked([job("a", 12)], [group(most=2)])
    assert growth == ()
    assert reasons(result)["a"] == "TooManyGPUs"
    result, growth = asked([job("a", 2), job("b", 4, arrival_s=1.0)], [group(most=1, nodes=1)])
    assert growth == ()
    told = "No node is asked for it: cloud has its 1 nodes at most, or has asked for them."
    assert result.waiting[0].message.endswith(told)


def test_a_job_on_one_node_asks_for_none_that_is_too_small() -> None:
    assert asked([job("a", 8, placement="consolidate")], [group()])[1] == ()


def test_jobs_wait_a_while_before_nodes_are_asked_for_them() -> None:
    young = job("a", 4, waiting_s=59.0)
    assert asked([young], [group(waiting_s=60.0)])[1] == ()
    assert asked([replace(young, waiting_s=60.0)], [group(waiting_s=60.0)])[1] == (Growth("cloud", 1, ("a",)),)


def test_a_younger_job_takes_no_part_in_what_is_asked_for() -> None:
    jobs = [job("young", 4, waiting_s=1.0), job("old", 4, arrival_s=1.0, waiting_s=99.0)]
    assert asked(jobs, [group(waiting_s=60.0, most=1)])[1] == (Growth("cloud", 1, ("old",)),)


def test_younger_jobs_ahead_do_not_make_an_older_one_ask_again_and_again() -> None:
    """Each would have the promise of the one before."""
    young = [job(f"young{index}", 4, arrival_s=float(index), waiting_s=1.0) for index in range(3)]
    jobs = [*young, job("old", 4, arrival_s=9.0, waiting_s=99.0)]
    assert asked(jobs, [group(waiting_s=60.0)])[1] == (Growth("cloud", 1, ("old",)),)
    promise = Promise(name="p", nodes=1, at=NOW)
    result, growth = asked(jobs, [group(waiting_s=60.0, promises=(promise,))])
    assert growth == ()
    assert [name for name, why in reasons(result).items() if why == "NodesPromised"] == ["old"]
    two = replace(promise, nodes=2)
    result, growth = asked(jobs, [group(waiting_s=60.0, promises=(two,))])
    assert (growth, result.unneeded) == ((), ())
    assert [name for name, why in reasons(result).items() if why == "NodesPromised"] == ["young0", "old"]


def test_a_job_that_may_ask_for_another_group_has_no_part_in_this_ones_promise() -> None:
    jobs = [job("young", 1, arrival_s=0.0, waiting_s=1.0), job("old", 4, arrival_s=9.0, waiting_s=99.0)]
    none = group("none", 1, most=0)
    assert asked(jobs, [none, group(waiting_s=60.0, most=9)], nodes=[])[1] == (Growth("cloud", 1, ("old",)),)
    promised = group(waiting_s=60.0, most=9, promises=(Promise(name="p", nodes=1, at=NOW),))
    result, growth = asked(jobs, [none, promised], nodes=[])
    assert growth == ()
    assert [name for name, why in reasons(result).items() if why == "NodesPromised"] == ["old"]


def test_types_and_nodes_that_a_job_names_bind_new_nodes_too() -> None:
    assert asked([job("a", 4, gpu_types=("A100",))], [group()])[1] == ()
    assert asked([job("a", 4, nodes=("n",))], [group()])[1] == ()
    assert asked([job("a", 4, nodes=("n", "cloud"))], [group()])[1] == (Growth("cloud", 1, ("a",)),)


def test_the_cheapest_group_is_asked_first() -> None:
    groups = [group("a-dear", price_per_hour=3.0), group("cheap", most=1, price_per_hour=1.0)]
    growth = asked([job("a", 4), job("b", 4, arrival_s=1.0)], groups)[1]
    assert growth == (Growth("cheap", 1, ("a",)), Growth("a-dear", 1, ("b",)))


def test_the_price_per_hour_bounds_all_gpus_together() -> None:
    there = [node("n", 2, cpus=6, gib=120, price_per_hour=2.0)]
    jobs = [job("a", 4), job("b", 4, arrival_s=1.0)]
    groups = [group(price_per_hour=2.0)]
    assert asked(jobs, groups, there, max_price_per_hour=20.0)[1] == (Growth("cloud", 2, ("a", "b")),)
    result, growth = asked(jobs, groups, there, max_price_per_hour=19.9)
    assert growth == (Growth("cloud", 1, ("a",)),)
    assert result.waiting[-1].message.endswith(
        "No node is asked for it: cloud would exceed the policy's price per hour."
    )
    promised = [group(price_per_hour=2.0, promises=(Promise(name="p", nodes=1, at=NOW),))]
    assert asked(jobs, promised, there, max_price_per_hour=19.9)[1] == (), "what is promised counts"


def test_without_a_price_no_group_grows_under_a_bound() -> None:
    result, growth = asked([job("a", 4)], [group()], max_price_per_hour=1e6)
    assert growth == ()
    assert "has no price" in result.waiting[0].message
    with pytest.raises(FieldError, match="max_price_per_hour: must be at least 0, is -1"):
        asked([], [], max_price_per_hour=-1.0)


def test_after_a_failed_request_the_group_waits() -> None:
    result, growth = asked([job("a", 4)], [group(not_before=NOW + 1)])
    assert growth == ()
    assert result.waiting[0].message.endswith("cloud asks for nothing yet, since a request has failed.")
    assert asked([job("a", 4)], [group(not_before=NOW)])[1] == (Growth("cloud", 1, ("a",)),)


def test_a_job_is_told_of_the_nodes_that_are_promised() -> None:
    promise = Promise(name="p1", nodes=2, at=NOW + 300)
    result, growth = asked([job("a", 8), job("b", 2, arrival_s=1.0)], [group(promises=(promise,))])
    assert growth == (), "what is asked for already is not asked for again"
    assert reasons(result) == {"a": "NodesPromised"}
    assert result.waiting[0].at == NOW + 300
    assert result.waiting[0].message.startswith("the 8 GPUs that it needs are on 2 nodes of cloud that are asked for")
    assert places(result) == {"b": {"n": 2}}
    assert result.unneeded == ()


def test_a_promise_that_no_job_needs_is_told() -> None:
    promises = (Promise(name="p1", nodes=1, at=NOW), Promise(name="p2", nodes=1, at=NOW))
    assert asked([job("a", 2)], [group(promises=promises)])[0].unneeded == ("p1", "p2")
    assert asked([job("a", 2), job("b", 4, arrival_s=1.0)], [group(promises=promises)])[0].unneeded == ("p2",)


def test_a_tenants_limit_holds_for_new_nodes() -> None:
    tenant = Tenant(name="t", limit={"V100": 4})
    jobs = [job("a", 4, tenant="t"), job("b", 4, tenant="t", arrival_s=1.0)]
    assert asked(jobs, [group()], tenants=(tenant,))[1] == (Growth("cloud", 1, ("a",)),)


def test_a_job_that_is_preempted_may_have_a_new_node() -> None:
    running = job("low", 2, running=holding("low", ("n", 2, 6, 120)), arrival_s=5.0, attained_gpu_s=9e9)
    result, growth = asked([running, job("new", 2)], [group()], policy="2d-las")
    assert result.preempted == ("low",)
    assert growth == (Growth("cloud", 1, ("low",)),)


def test_jobs_on_shared_gpus_stay_where_they_are() -> None:
    shared = node("s", 1, cpus=3, gib=60, replicas=2, gpu_memory_bytes=16 * GIB)
    held = {
        name: replace(holding(name, ("s", 1, 1.5, 30)), shares_gpu_with=other)
        for name, other in (("a", "b"), ("b", "a"))
    }
    pair = [job(name, 1, running=held[name], sharing=True) for name in held]
    result, growth = asked([*pair, job("c", 4, arrival_s=9.0)], [group()], [shared], mode="fill", colocation="auto")
    assert growth == (Growth("cloud", 1, ("c",)),)
    assert places(result) == {"a": {"s": 1}, "b": {"s": 1}}


def test_json_has_what_is_promised_and_asked_for() -> None:
    promise = Promise(name="p1", nodes=1, at=NOW)
    snapshot = Snapshot(nodes=(), jobs=(job("a", 4), job("b", 4)), node_groups=(group(promises=(promise,)),), now=NOW)
    assert parse_snapshot(_json(snapshot_document(snapshot))) == snapshot
    document = plan_document(plan(snapshot, PlanConfig(policy="fifo")), seconds=0.0)
    assert document["growth"] == [{"group": "cloud", "nodes": 1, "jobs": ["b"]}]
    assert document["waiting"][0]["at"] == NOW
    twice = snapshot_document(snapshot)
    twice["node_groups"] = twice["node_groups"] * 2
    with pytest.raises(SnapshotError, match=r"node_groups\[1\].name: 'cloud' is also node_groups\[0\]"):
        parse_snapshot(_json(twice))
    other = snapshot_document(replace(snapshot, nodes=(node("n"),)))
    other["node_groups"][0]["further"] = {"disk": 1}
    with pytest.raises(SnapshotError, match=r"nodes\[0\].further.disk: missing, node 'cloud' has it"):
        parse_snapshot(_json(other))


def _json(document: dict[str, Any]) -> str:
    import json

    return json.dumps(document)


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    nodes = [
        node(f"n{index}", gpus, cpus=3 * gpus, gib=60 * gpus, price_per_hour=1.0)
        for index, gpus in enumerate(draw(st.lists(st.sampled_from((1, 2, 4)), max_size=3)))
    ]
    jobs = [
        job(
            f"j{index}",
            draw(st.sampled_from((1, 2, 4, 8, 12))),
            arrival_s=float(draw(st.integers(0, 5))),
            placement=draw(st.sampled_from(("auto", "consolidate", "pack", "spread"))),
            gpu_types=draw(st.sampled_from(((), ("V100",), ("A100",)))),
            waiting_s=float(draw(st.integers(0, 100))),
            tenant=draw(st.sampled_from(("red", "blue"))),
        )
        for index in range(draw(st.integers(0, 6)))
    ]
    groups = []
    for name in draw(st.lists(st.sampled_from(("x", "y", "z")), unique=True, max_size=3)):
        promises = tuple(
            Promise(name=f"{name}-p{at}", nodes=draw(st.integers(1, 2)), at=NOW + at)
            for at in range(draw(st.integers(0, 2)))
        )
        groups.append(
            group(
                name,
                draw(st.sampled_from((1, 4, 8))),
                draw(st.integers(0, 5)),
                nodes=draw(st.integers(0, 2)),
                gpu_type=draw(st.sampled_from(("V100", "A100"))),
                price_per_hour=float(draw(st.sampled_from((0, 1, 3)))),
                waiting_s=float(draw(st.sampled_from((0, 50)))),
                not_before=draw(st.sampled_from((None, NOW + 10))),
                promises=promises,
            )
        )
    limits = Tenant(name="red", limit={"V100": draw(st.integers(0, 8))})
    return Snapshot(nodes=tuple(nodes), jobs=tuple(jobs), node_groups=tuple(groups), now=NOW, tenants=(limits,))


configs = st.builds(
    PlanConfig,
    policy=st.sampled_from(("fifo", "2d-las", "yarn-cs", "max-min-fairness")),
    mechanism=st.sampled_from(("proportional", "tune", "greedy")),
    mode=st.sampled_from(("round", "fill")),
    max_price_per_hour=st.sampled_from((None, 0.0, 10.0, 30.0)),
)


@settings(max_examples=150)
@given(clusters(), configs)
def test_what_is_asked_for_is_within_all_bounds(snapshot: Snapshot, config: PlanConfig) -> None:
    result = plan(snapshot, config)
    without = plan(replace(snapshot, node_groups=()), config)
    assert (result.allocations, result.preempted) == (without.allocations, without.preempted)
    assert plan(replace(snapshot, jobs=snapshot.jobs[::-1], node_groups=snapshot.node_groups[::-1]), config) == result
    groups = {one.name: one for one in snapshot.node_groups}
    waits = {one.job: one for one in result.waiting}
    price = sum(one.gpus * one.price_per_hour for one in snapshot.nodes)
    price += sum(g.gpus * g.price_per_hour * p.nodes for g in groups.values() for p in g.promises)
    for grown in result.growth:
        its = groups[grown.group]
        assert grown.nodes >= 1
        assert its.nodes + sum(p.nodes for p in its.promises) + grown.nodes <= its.max_nodes
        assert its.not_before is None
        price += its.gpus * its.price_per_hour * grown.nodes
        assert config.max_price_per_hour is None or its.price_per_hour > 0
        for name in grown.jobs:
            one = next(one for one in snapshot.jobs if one.name == name)
            assert waits[name].reason != "NodesPromised"
            assert one.waiting_s >= its.waiting_s
            assert its.gpu_type in (one.gpu_types or (its.gpu_type,))
    if config.max_price_per_hour is not None and result.growth:
        assert price <= config.max_price_per_hour + 1e-6


@settings(max_examples=150)
@given(clusters(), configs)
def test_what_is_asked_for_comes_and_is_used_and_nothing_is_asked_for_twice(
    snapshot: Snapshot, config: PlanConfig
) -> None:
    """The requests become promises: no further plan asks for more, and none is unneeded. The nodes come: all jobs that
    are told of them have a place, whole, where no job that has not waited long enough takes it."""
    result = plan(snapshot, config)
    if not result.growth:
        return
    asked_for = {one.group: one.nodes for one in result.growth}
    promised = replace(
        snapshot,
        node_groups=tuple(
            replace(one, promises=(*one.promises, Promise(name=f"{one.name}-q", nodes=asked_for[one.name], at=NOW)))
            if one.name in asked_for
            else one
            for one in snapshot.node_groups
        ),
    )
    again = plan(promised, config)
    assert again.growth == ()
    told = {one.job for one in again.waiting if one.reason == "NodesPromised"}
    assert told >= {name for one in result.growth for name in one.jobs}
    come = [
        Node(
            name=f"{one.name}-{promise.name}-{index}", gpu_type=one.gpu_type, gpus=one.gpus,
            cpu_millis=one.cpu_millis, memory_bytes=one.memory_bytes, price_per_hour=one.price_per_hour,
        )
        for one in promised.node_groups for promise in one.promises for index in range(promise.nodes)
    ]  # fmt: skip
    arrived = replace(
        snapshot,
        nodes=(*snapshot.nodes, *come),
        node_groups=tuple(replace(one, promises=()) for one in snapshot.node_groups),
        jobs=tuple(
            replace(one, running=next((a for a in result.allocations if a.job == one.name), None))
            for one in snapshot.jobs
            if one.name in told or one.name in {a.job for a in result.allocations}
        ),
    )
    filled = {one.job for one in plan(arrived, replace(config, policy="best-effort", mode="fill")).allocations}
    assert filled >= {name for one in result.growth for name in one.jobs}


def test_a_quota_counts_new_gpus_as_those_of_nodes() -> None:
    """Else a node would be asked for whose GPUs the job's namespace may not have, again and again."""
    draw = QuotaDraw(quota="team")
    busy = job("busy", 2, running=holding("busy", ("n", 2, 6, 120)), preemptible=False)
    there = node("n", 2, cpus=6, gib=120)

    def grown(counts: str, **more: Any) -> tuple[Growth, ...]:
        limit = QuotaLimit(resource="requests.gpu", counts=counts, hard=4)
        quota = Quota(name="team", limits=(limit,))
        waits = job("a", 4, arrival_s=1.0, quotas=(draw,))
        snapshot = Snapshot(nodes=(there,), jobs=(busy, waits), node_groups=(group(**more),), quotas=(quota,), now=NOW)
        return plan(snapshot, PlanConfig(policy="fifo")).growth

    assert grown("gpus") == (Growth("cloud", 1, ("a",)),)
    assert grown("gpus", devices_per_gpu=2) == ()
    assert grown("amd.com/gpu", devices_per_gpu=2) == (Growth("cloud", 1, ("a",)),), "the quota counts other GPUs"
    assert grown("amd.com/gpu", devices_per_gpu=2, counted_as="amd.com/gpu") == ()
