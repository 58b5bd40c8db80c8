"""A cluster that is planned in parts: the same plan where parts are independent, and the same promises where not."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from support.planner import promises
from support.planner.planning import holding, job, node
from support.planner.snapshots import GIB, TYPES, configs_of, snapshots
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig, PriorityQueues
from synergy_core.model.reasons import Reason
from synergy_core.model.snapshot import Job, NodeGroup, Quota, QuotaDraw, Snapshot, Tenant
from synergy_core.partitions.by_parts import plan_by_parts
from synergy_core.partitions.shared import MECHANISMS, POLICIES, indivisible
from synergy_core.plan import plan

often = settings(suppress_health_check=[HealthCheck.too_slow])
configs = configs_of(
    MECHANISMS,
    POLICIES,
    estimate=st.just("none"),
    explain=st.booleans(),
    minimum_run_s=st.sampled_from((0.0, 100.0)),
    preemption_payback=st.sampled_from((0.0, 10.0)),
)


class Parts:
    """Plans parts one after the other, and counts them."""

    def __init__(self) -> None:
        self.planned: list[Snapshot] = []

    def __call__(self, parts: Sequence[Snapshot], config: PlanConfig) -> list[Plan]:
        self.planned += parts
        return [plan(part, config) for part in parts]


@st.composite
def mixed(draw: st.DrawFn, *, homed: bool) -> Snapshot:
    """Training jobs of several tenants; without a home each may run on one type."""
    snapshot = draw(snapshots(disturbed=draw(st.booleans())))
    tenants: tuple[Tenant, ...] = ()
    if draw(st.booleans()):
        tenants = (
            Tenant(name="red", guarantee={"A100": 4, "V100": 2}, preemptions_per_hour=draw(st.sampled_from((None, 1)))),
            Tenant(name="pink", parent="red", guarantee={"V100": 2}, limit={"A100": 3}),
            Tenant(name="blue", guarantee={"V100": 4}, borrowing={"V100": 2}),
        )
    jobs = []
    for one in snapshot.jobs:
        own = one.running.gpu_type if one.running is not None else draw(st.sampled_from(TYPES))
        more = {} if homed and draw(st.booleans()) else {"gpu_types": (own,)}
        tenant, priority = draw(st.sampled_from(("red", "pink", "blue"))), draw(st.sampled_from((0, 0, 0, 1)))
        jobs.append(replace(one, purpose="train", tenant=tenant, priority=priority, **more))
    return replace(snapshot, jobs=tuple(jobs), tenants=tenants)


def unordered(result: Plan) -> Plan:
    """Who lost a place first is told within each part only."""
    return replace(result, displaced=tuple(sorted(result.displaced, key=lambda one: one.job)))


@often
@given(mixed(homed=False), configs)
def test_independent_parts_make_the_plan_of_the_whole(snapshot: Snapshot, config: PlanConfig) -> None:
    parts = Parts()
    made = plan_by_parts(snapshot, config, parts)
    event(f"{len(parts.planned)} parts")
    assert unordered(made) == unordered(plan(snapshot, config))


@often
@given(mixed(homed=True), configs)
def test_parts_with_jobs_that_have_a_choice_keep_every_promise(snapshot: Snapshot, config: PlanConfig) -> None:
    parts = Parts()
    made = plan_by_parts(snapshot, replace(config, explain=True), parts)
    event(f"{len(parts.planned)} parts")
    promises.all_promises(snapshot, made, fill=config.mode == "fill")
    assert {one.job for one in made.waiting} | {one.job for one in made.allocations} <= {j.name for j in snapshot.jobs}


def _on_types(*jobs: Job) -> Snapshot:
    return Snapshot(nodes=(node("a", 2, gpu_type="A100"), node("v", 2, gpu_type="V100")), jobs=jobs)


_FIFO = PlanConfig(policy="fifo", mechanism="tune", estimate="none")


def _planned(snapshot: Snapshot, config: PlanConfig = _FIFO) -> tuple[dict[str, str], Parts]:
    parts = Parts()
    made = plan_by_parts(snapshot, config, parts)
    return {one.job: one.gpu_type for one in made.allocations}, parts


def test_jobs_with_a_choice_are_spread_over_the_types_that_have_room() -> None:
    placed, parts = _planned(_on_types(job("x", 2, arrival_s=0.0), job("y", 2, arrival_s=1.0)))
    assert placed == {"x": "A100", "y": "V100"}
    assert len(parts.planned) == 2


def test_a_job_that_does_not_fit_into_its_home_is_tried_elsewhere() -> None:
    """Two GPUs are counted on A100, but on two nodes, and the job needs one node."""
    nodes = (*(node(f"a{index}", 1, gpu_type="A100") for index in range(2)), node("v", 2))
    snapshot = Snapshot(nodes=nodes, jobs=(job("x", 2, placement="consolidate"), job("y", 1, gpu_types=("A100",))))
    placed, parts = _planned(snapshot)
    assert placed == {"x": "V100", "y": "A100"}
    assert len(parts.planned) == 4


def test_where_moving_does_not_help_the_cluster_is_planned_as_one() -> None:
    """Neither type has a node with two GPUs."""
    nodes = tuple(node(f"{kind}{index}", 1, gpu_type=kind) for index in range(2) for kind in TYPES)
    snapshot = Snapshot(nodes=nodes, jobs=(job("x", 2, placement="consolidate"),))
    parts = Parts()
    assert plan_by_parts(snapshot, _FIFO, parts) == plan(snapshot, _FIFO)
    assert len(parts.planned) == 4


def test_what_a_quota_connects_is_one_part() -> None:
    draws = (QuotaDraw(quota="q"),)
    jobs = (job("x", gpu_types=("A100",), quotas=draws), job("y", gpu_types=("V100",), quotas=draws))
    nodes = _on_types().nodes
    snapshot = Snapshot(
        nodes=nodes, jobs=(jobs[0], job("y", gpu_types=("V100",))), quotas=(Quota(name="q", limits=()),)
    )
    _, apart = _planned(snapshot)
    _, together = _planned(replace(snapshot, jobs=jobs))
    assert (len(apart.planned), len(together.planned)) == (2, 0)


@pytest.mark.parametrize(
    ("change", "config", "why"),
    [
        ({"nodes": (node("a"),)}, {}, "one GPU type"),
        ({}, {"policy": "ftf"}, "ftf compares jobs"),
        ({}, {"mechanism": "drf"}, "drf has an order of its own"),
        ({"jobs": (job("x", priority=1), job("y"))}, {"priorities_across": True}, "classes count across"),
        ({"jobs": (job("x", purpose="profile"),)}, {}, "profile runs"),
        ({"jobs": (job("x", sharing=True),)}, {"colocation": "auto"}, "jobs may share"),
        ({"jobs": (job("x", measured={"A100": 1.0}),)}, {"estimate": "all"}, "estimated from other jobs"),
        ({"nodes": (node("a", gpu_type="A100"), node("v", replicas=2))}, {}, "shared GPUs"),
        ({}, {}, ""),
        ({"jobs": (job("x", measured={"A100": 1.0}),)}, {"estimate": "named"}, ""),
        ({"jobs": (job("x", measured={"A100": 1.0, "V100": 1.0}),)}, {"estimate": "all"}, ""),
    ],
)
def test_what_all_types_share_makes_a_cluster_indivisible(
    change: dict[str, Any], config: dict[str, Any], why: str
) -> None:
    snapshot = replace(_on_types(job("x")), **change)
    found = indivisible(snapshot, replace(_FIFO, **config))
    assert why in found
    assert bool(found) == bool(why)


def test_a_part_s_growth_is_found_for_the_whole_cluster() -> None:
    group = NodeGroup(name="g", gpu_type="V100", gpus=4, cpu_millis=24000, memory_bytes=500 * GIB, max_nodes=2)
    jobs = (job("x", 4, gpu_types=("V100",)), job("y", 1, gpu_types=("A100",)))
    snapshot = replace(_on_types(*jobs), node_groups=(group,))
    parts = Parts()
    made = plan_by_parts(snapshot, _FIFO, parts)
    assert [(one.group, one.jobs) for one in made.growth] == [("g", ("x",))]
    assert made == plan(snapshot, _FIFO)
    assert len(parts.planned) == 2


def _with_one_that_loses_its_place(*others: Job) -> Snapshot:
    runs = job("x", 2, arrival_s=1.0, running=holding("x", ("a", 2, 6, 100), gpu_type="A100"))
    return _on_types(runs, job("y", 2, arrival_s=0.0, gpu_types=("A100",)), *others)


def test_a_running_job_that_loses_its_place_moves_to_another_type() -> None:
    snapshot, parts = _with_one_that_loses_its_place(), Parts()
    made = plan_by_parts(snapshot, _FIFO, parts)
    assert {one.job: one.gpu_type for one in made.allocations} == {"x": "V100", "y": "A100"}
    assert (made.preempted, [one.job for one in made.displaced]) == (("x",), ["x"])
    assert len(parts.planned) == 2
    whole = plan(snapshot, _FIFO)
    assert (made.allocations, made.preempted) == (whole.allocations, whole.preempted)


def test_a_running_job_that_finds_no_place_has_yielded() -> None:
    snapshot, parts = _with_one_that_loses_its_place(job("z", 2, arrival_s=0.5, gpu_types=("V100",))), Parts()
    made = plan_by_parts(snapshot, _FIFO, parts)
    assert [(one.job, one.reason) for one in made.waiting] == [("x", Reason.YIELDED)]
    assert made.preempted == ("x",)
    assert len(parts.planned) == 2


def test_where_waiting_counts_no_running_job_is_planned_as_a_waiting_one() -> None:
    snapshot = _with_one_that_loses_its_place()
    config = replace(_FIFO, queues=PriorityQueues(promote_knob=2.0))
    placed, parts = _planned(snapshot, config)
    assert placed == {"x": "V100", "y": "A100"}
    assert parts.planned == []
