"""Urgent classes: jobs of lower classes give way at once."""

from dataclasses import replace
from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.planner.planning import holding, job, node, reasons
from support.planner.quotas import gpu_quota
from synergy_core.explain.preemptions import Preemption, PreemptionRule, preemptions
from synergy_core.mechanisms import MECHANISMS
from synergy_core.model.answer import GaveWay
from synergy_core.model.config import Mode, PlanConfig
from synergy_core.model.snapshot import Job, QuotaDraw, Snapshot, Tenant
from synergy_core.plan import plan

FILL = PlanConfig(policy="fifo", mode="fill", preemption_payback=10.0)


def _runs(name: str, gpus: int = 1, where: str = "n", **more: object) -> Job:
    held = holding(name, (where, gpus, 3 * gpus, 60 * gpus))
    return job(name, gpus, **{"running": held, "started_s": 0.0, "run_started_s": 0.0, **more})  # type: ignore[arg-type]


def _urgent(name: str = "urgent", gpus: int = 1, **more: object) -> Job:
    return job(name, gpus, **{"priority": 9, "urgent": True, "arrival_s": 50.0, **more})  # type: ignore[arg-type]


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Two nodes with running jobs of two tenants, and jobs that wait, some urgent."""
    left = {"m": 2, "n": 3}
    jobs: list[Job] = []
    for index in range(draw(st.integers(0, 6))):
        where, gpus = draw(st.sampled_from(("m", "n"))), draw(st.sampled_from((1, 1, 2)))
        if left[where] >= gpus:
            left[where] -= gpus
            more = {
                "tenant": draw(st.sampled_from(("red", "blue"))),
                "priority": draw(st.sampled_from((-1, 0, 9))),
                "preemptible": draw(st.sampled_from((True, True, False))),
                "run_started_s": float(draw(st.sampled_from((0, 50, 90)))),
            }
            jobs.append(_runs(f"r{index}", gpus, where, **more))
    for index in range(draw(st.integers(1, 3))):
        more = {"tenant": draw(st.sampled_from(("red", "blue"))), "gpus": draw(st.sampled_from((1, 2, 3, 4)))}
        more["placement"] = draw(st.sampled_from(("auto", "consolidate")))
        urgent = draw(st.sampled_from((True, True, False)))
        jobs.append(_urgent(f"w{index}", urgent=urgent, priority=9 if urgent else 0, **more))
    nodes = (node("m", 2, cpus=6, gib=120), node("n", 3, cpus=9, gib=180))
    return Snapshot(nodes=nodes, jobs=tuple(jobs), now=100.0)


fills = st.builds(
    PlanConfig,
    policy=st.sampled_from(("fifo", "2d-las", "srtf", "yarn-cs", "max-min-fairness")),
    mechanism=st.sampled_from(sorted(set(MECHANISMS) - {"opt"})),
    mode=st.just("fill"),
    minimum_run_s=st.sampled_from((0.0, 30.0)),
    priorities_across=st.booleans(),
)


@given(clusters(), fills)
@settings(max_examples=100)
def test_only_lower_classes_give_way_and_nobody_else_loses_anything(snapshot: Snapshot, config: PlanConfig) -> None:
    jobs = {one.name: one for one in snapshot.jobs}
    calm = replace(snapshot, jobs=tuple(replace(one, urgent=False) for one in snapshot.jobs))
    before = {one.job: one for one in plan(calm, config).allocations}
    found = plan(snapshot, config)
    after = {one.job: one for one in found.allocations}
    assert tuple(one.job for one in found.gave_way) == found.preempted
    for one in found.gave_way:
        victim, urgent = jobs[one.job], jobs[one.urgent]
        assert victim.priority < urgent.priority
        assert urgent.urgent
        assert urgent.name in after
        assert victim.preemptible
        assert config.priorities_across or victim.tenant == urgent.tenant
        assert snapshot.now - (victim.run_started_s or 0.0) >= config.minimum_run_s
        assert reasons(found)[victim.name] == "YieldedToOthers"
    tenants = {jobs[one.urgent].tenant for one in found.gave_way}
    for name in before.keys() - set(found.preempted):
        runs = jobs[name].running is not None
        if runs or jobs[name].urgent or (jobs[name].tenant not in tenants and not config.priorities_across):
            assert name in after
        if runs:
            assert after[name].workers == before[name].workers or not config.mechanism.startswith("proportional")


@given(clusters(), fills)
@settings(max_examples=60)
def test_room_is_found_exactly_where_there_is_some_and_no_job_gives_way_in_vain(
    snapshot: Snapshot, config: PlanConfig
) -> None:
    """Against every set of jobs that could give way, for the first urgent job alone."""
    urgent = next((one for one in snapshot.jobs if one.urgent), None)
    others = tuple(one for one in snapshot.jobs if one.running is not None)
    if urgent is None:
        return
    snapshot = replace(snapshot, jobs=(*others, urgent))

    def fits(gone: set[str]) -> bool:
        left = tuple(replace(one, urgent=False) for one in snapshot.jobs if one.name not in gone)
        found = {one.job for one in plan(replace(snapshot, jobs=left), config).allocations}
        return urgent.name in found

    may = [
        one.name
        for one in others
        if one.preemptible and one.priority < 9 and (config.priorities_across or one.tenant == urgent.tenant)
        and snapshot.now - (one.run_started_s or 0.0) >= config.minimum_run_s
    ]  # fmt: skip
    possible = any(fits(set(names)) for size in range(len(may) + 1) for names in combinations(may, size))
    found = plan(snapshot, config)
    assert (urgent.name in {one.job for one in found.allocations}) == possible
    gone = set(found.preempted)
    assert gone <= set(may)
    assert not any(fits(gone - {name}) for name in gone)


@given(clusters(), fills, st.integers(0, 1000))
@settings(max_examples=40)
def test_the_order_of_jobs_does_not_matter(snapshot: Snapshot, config: PlanConfig, seed: int) -> None:
    jobs = list(snapshot.jobs)
    Random(seed).shuffle(jobs)
    assert plan(replace(snapshot, jobs=tuple(jobs)), config) == plan(snapshot, config)


def test_the_lowest_class_gives_way_first_and_in_it_the_youngest_run() -> None:
    jobs = (
        _runs("old", priority=0), _runs("young", priority=0, run_started_s=40.0), _runs("middle", priority=5),
        _urgent(),
    )  # fmt: skip
    found = plan(Snapshot(nodes=(node("n", 3),), jobs=jobs, now=100.0), FILL)
    assert found.gave_way == (GaveWay("young", "urgent"),)
    assert found.preempted == ("young",)


def test_a_class_that_is_not_urgent_waits_for_the_rounds_end() -> None:
    jobs = (_runs("runs"), _urgent(urgent=False))
    assert plan(Snapshot(nodes=(node("n", 1),), jobs=jobs, now=100.0), FILL).preempted == ()


def test_the_payback_time_protects_no_run_from_an_urgent_job_and_a_minimum_run_does() -> None:
    jobs = (_runs("runs", preemption_cost_s=60.0), _urgent())
    snapshot = Snapshot(nodes=(node("n", 1),), jobs=jobs, now=100.0)
    assert plan(snapshot, FILL).preempted == ("runs",)
    assert plan(snapshot, replace(FILL, mode="round")).gave_way == (GaveWay("runs", "urgent"),)
    assert plan(snapshot, replace(FILL, minimum_run_s=101.0)).preempted == ()


def test_a_guarantee_of_another_tenant_is_stronger_than_an_urgent_class() -> None:
    jobs = (_runs("a", tenant="red"), _runs("b", tenant="red"), _urgent(gpus=1, tenant="blue"))
    config = replace(FILL, priorities_across=True)

    def preempted(guarantee: int) -> int:
        tenants = (Tenant("red", guarantee={"V100": guarantee}), Tenant("blue"))
        snapshot = Snapshot(nodes=(node("n", 2),), jobs=jobs, now=100.0, tenants=tenants)
        return len(plan(snapshot, config).preempted)

    assert (preempted(0), preempted(1), preempted(2)) == (1, 1, 0)


@pytest.mark.parametrize("mode", ["round", "fill"])
def test_an_urgent_job_that_its_quota_shuts_out_waits_and_nobody_gives_way(mode: Mode) -> None:
    full = gpu_quota("red/gpus", 1, used=1)
    jobs = (_runs("low"), _urgent(quotas=(QuotaDraw(quota=full.name),)))
    snapshot = Snapshot(nodes=(node("n", 1),), jobs=jobs, now=100.0, quotas=(full,))
    found = plan(snapshot, replace(FILL, mode=mode))
    assert reasons(found) == {"urgent": "QuotaFull"}
    assert found.gave_way == ()


def test_jobs_that_share_a_gpu_give_way_together_or_not_at_all() -> None:
    held = [
        replace(holding(name, ("n", 1, 1.5, 30)), shares_gpu_with=other) for name, other in (("a", "b"), ("b", "a"))
    ]
    shared = node("n", 1, replicas=2, gpu_memory_bytes=16 * 2**30)
    low = [job(name, running=one, started_s=0.0, sharing=True) for name, one in zip("ab", held, strict=True)]
    config = replace(FILL, colocation="auto")
    found = plan(Snapshot(nodes=(shared,), jobs=(*low, _urgent()), now=100.0), config)
    assert found.preempted == ("a", "b")
    kept = (low[0], replace(low[1], preemptible=False), _urgent())
    assert plan(Snapshot(nodes=(shared,), jobs=kept, now=100.0), config).preempted == ()


@pytest.mark.parametrize("explained", [True, False])
def test_reasons_are_told_where_they_are_asked_for(explained: bool) -> None:
    jobs = (_runs("runs"), _urgent(), job("other", arrival_s=60.0))
    found = plan(Snapshot(nodes=(node("n", 1),), jobs=jobs, now=100.0), replace(FILL, explain=explained))
    assert set(reasons(found)) == ({"runs", "other"} if explained else set())


def test_each_rule_is_told_with_those_who_get_the_gpus() -> None:
    tenants = (Tenant("red"), Tenant("blue", guarantee={"V100": 1}))
    snapshot = Snapshot(nodes=(node("n", 1),), jobs=(_runs("runs", tenant="red"),), now=100.0, tenants=tenants)
    config = PlanConfig(policy="fifo", preemption_payback=0.0)

    def told(*jobs: Job, at: Snapshot = snapshot) -> tuple[Preemption, ...]:
        given = replace(at, jobs=(*at.jobs, *jobs))
        return preemptions(given, plan(given, config), across=False)

    by_class = told(job("high", tenant="red", priority=1))
    assert by_class == (Preemption("runs", PreemptionRule.PRIORITY_CLASS, ("high",)),)
    assert told(job("first", tenant="red", arrival_s=-1.0)) == (Preemption("runs", PreemptionRule.POLICY, ("first",)),)
    away = replace(snapshot, nodes=(node("other", 1),))
    assert told(at=away) == (Preemption("runs", PreemptionRule.NODE),)
    assert told() == ()
