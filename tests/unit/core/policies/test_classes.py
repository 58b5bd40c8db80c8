"""Priority classes above the policy: a permutation of each tenant's positions in the queue."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.planner.planning import holding, job, node
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Snapshot, Tenant
from synergy_core.plan import plan
from synergy_core.policies import POLICIES
from synergy_core.policies.classes import by_class
from synergy_core.policies.queue import Ranking

PREEMPTING = sorted(set(POLICIES) - {"yarn-cs", "best-effort", "min-cost", "min-cost-slo", "gandiva"})
"""Policies that preempt, and let no GPU idle that a job could use."""
CLASSES = (-5, 0, 0, 0, 7)


@st.composite
def crowds(draw: st.DrawFn) -> Snapshot:
    """Jobs of one GPU and of two tenants on a few GPUs of one type; some run."""
    gpus = draw(st.integers(1, 4))
    jobs: list[Job] = []
    for index in range(draw(st.integers(1, 8))):
        name = f"j{index}"
        runs = len([one for one in jobs if one.running]) < gpus and draw(st.booleans())
        jobs.append(
            job(
                name,
                arrival_s=float(draw(st.integers(0, 5))),
                tenant=draw(st.sampled_from(("red", "blue"))),
                priority=draw(st.sampled_from(CLASSES)),
                attained_gpu_s=float(draw(st.integers(0, 6))),
                started_s=0.0,
                steps_total=draw(st.sampled_from((None, 100))),
                running=holding(name, ("n", 1, 3, 60)) if runs else None,
            )
        )
    return Snapshot(nodes=(node("n", gpus, cpus=3 * gpus, gib=60 * gpus),), jobs=tuple(jobs), now=100.0)


def _config(policy: str, *, across: bool = False) -> PlanConfig:
    return PlanConfig(policy=policy, mechanism="proportional", preemption_payback=0.0, priorities_across=across)


@given(crowds(), st.sampled_from(PREEMPTING), st.booleans())
@settings(max_examples=100)
def test_no_job_of_a_tenant_waits_while_one_of_a_lower_class_runs(
    snapshot: Snapshot, policy: str, across: bool
) -> None:
    runs = {one.job for one in plan(snapshot, _config(policy, across=across)).allocations}
    for waiting in (one for one in snapshot.jobs if one.name not in runs):
        for running in (one for one in snapshot.jobs if one.name in runs):
            if across or running.tenant == waiting.tenant:
                assert running.priority >= waiting.priority, (waiting.name, running.name)


@given(crowds(), st.sampled_from(PREEMPTING))
@settings(max_examples=100)
def test_classes_of_one_tenant_change_nothing_for_the_other(snapshot: Snapshot, policy: str) -> None:
    plain = replace(snapshot, jobs=tuple(replace(one, priority=0) for one in snapshot.jobs))
    before, after = ({one.job for one in plan(each, _config(policy)).allocations} for each in (plain, snapshot))
    for tenant in ("red", "blue"):
        names = {one.name for one in snapshot.jobs if one.tenant == tenant}
        assert len(before & names) == len(after & names)
    mixed = replace(
        snapshot, jobs=tuple(replace(one, priority=0) if one.tenant == "red" else one for one in snapshot.jobs)
    )
    red = {one.name for one in snapshot.jobs if one.tenant == "red"}
    assert {one.job for one in plan(mixed, _config(policy)).allocations} & red == before & red


@given(st.permutations(range(8)), st.lists(st.sampled_from(CLASSES), min_size=8, max_size=8), st.booleans())
def test_it_is_a_stable_permutation_of_each_tenants_positions(
    order: list[int], classes: list[int], across: bool
) -> None:
    jobs = [job(f"j{i}", tenant="ab"[i % 2], priority=priority) for i, priority in enumerate(classes)]
    by_name = {one.name: one for one in jobs}
    before = Ranking(tuple(f"j{i}" for i in order))
    names = by_class(before, jobs, across=across).names
    assert sorted(names) == sorted(before.names)
    if not across:
        assert [by_name[name].tenant for name in names] == [by_name[name].tenant for name in before.names]
    for tenant in ("ab",) if across else ("a", "b"):
        theirs = [name for name in names if by_name[name].tenant in tenant]
        expected = sorted(
            (name for name in before.names if by_name[name].tenant in tenant),
            key=lambda name: (-by_name[name].priority, before.names.index(name)),
        )
        assert theirs == expected


def test_without_classes_the_ranking_is_the_same_object() -> None:
    before = Ranking(("b", "a"))
    assert by_class(before, [job("a", priority=3), job("b", priority=3)], across=True) is before


def test_profile_runs_and_pairs_keep_their_positions() -> None:
    jobs = [
        job("measured", purpose="profile"), job("one"), job("two"), job("low", priority=-1), job("high", priority=9),
    ]  # fmt: skip
    before = Ranking(("measured", "low", "one", "two", "high"), together=(("V100", ("one", "two")),))
    assert by_class(before, jobs, across=False).names == ("measured", "high", "one", "two", "low")


def test_a_job_takes_the_type_of_the_position_that_it_moves_into() -> None:
    jobs = [job("low"), job("high", priority=9)]
    types = {"low": ("V100",), "high": ("A100", "V100")}
    after = by_class(Ranking(("low", "high"), types=types), jobs, across=False)
    assert (after.names, after.types["high"], after.types["low"]) == (("high", "low"), ("V100", "A100"), ("V100",))
    assert sorted(after.types) == ["high", "low"]
    own = by_class(Ranking(("low", "high"), types={"low": ("V100",), "high": ("A100",)}), jobs, across=False)
    assert own.types["high"] == ("A100",)


@pytest.mark.parametrize("policy", ["fifo", "max-min-fairness"])
def test_a_higher_class_preempts_at_a_rounds_end_and_not_between(policy: str) -> None:
    runs = job("runs", running=holding("runs", ("n", 1, 3, 60)), started_s=0.0)
    snapshot = Snapshot(nodes=(node("n", 1),), jobs=(runs, job("high", arrival_s=5.0, priority=1)), now=100.0)
    config = _config(policy)
    assert plan(snapshot, config).preempted == ("runs",)
    assert plan(snapshot, replace(config, mode="fill")).preempted == ()


@pytest.mark.parametrize("policy", ["yarn-cs", "best-effort"])
def test_a_policy_that_preempts_nobody_orders_by_class_only(policy: str) -> None:
    runs = job("runs", running=holding("runs", ("n", 1, 3, 60)), started_s=0.0)
    jobs = (runs, job("early"), job("high", arrival_s=5.0, priority=1))
    full = plan(Snapshot(nodes=(node("n", 1),), jobs=jobs, now=100.0), _config(policy))
    assert full.preempted == ()
    free = plan(Snapshot(nodes=(node("n", 2),), jobs=jobs, now=100.0), _config(policy))
    assert {one.job for one in free.allocations} == {"runs", "high"}


def test_across_tenants_a_guarantee_is_stronger_than_a_class_and_what_is_lent_goes_by_class() -> None:
    tenants = (Tenant("red", guarantee={"V100": 1}), Tenant("blue"))
    jobs = (
        job("red-low", tenant="red", priority=-5), job("red-more", tenant="red", priority=-5),
        job("blue-a", tenant="blue", priority=9, arrival_s=3.0),
        job("blue-b", tenant="blue", priority=9, arrival_s=4.0),
    )  # fmt: skip

    def runs(gpus: int, *, across: bool) -> set[str]:
        snapshot = Snapshot(nodes=(node("n", gpus),), jobs=jobs, now=100.0, tenants=tenants)
        return {one.job for one in plan(snapshot, _config("fifo", across=across)).allocations}

    assert runs(1, across=True) == {"red-low"}
    assert runs(3, across=True) == {"red-low", "blue-a", "blue-b"}
    assert runs(2, across=True) == {"red-low", "blue-a"}
    assert runs(2, across=False) == {"red-low", "red-more"}
