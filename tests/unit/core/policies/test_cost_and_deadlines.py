"""Cost, deadlines and tenants in the planner (Gavel, sections 4.2 and 4.3)."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from support.planner.planning import GIB, holding, job, node, planned, reasons
from synergy_core.cache import Memory
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import FieldError, Job, Profile, Snapshot, Tenant
from synergy_core.plan import plan
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.programme.point import InfeasibleError
from synergy_core.policies.allocation.programme.programme import Programme

HOUR = 3600.0
DEAR_AND_CHEAP = (node("v", 1, gpu_type="V100", price_per_hour=4.0), node("k", 1, gpu_type="K80", price_per_hour=1.0))


def _typed(name: str, gpus: int = 1, *, V100: float = 0.0, K80: float = 0.0, **more: Any) -> Job:  # noqa: N803
    speeds = {gpu_type: speed for gpu_type, speed in (("V100", V100), ("K80", K80)) if speed}
    profiles = {
        gpu_type: Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((speed,),))
        for gpu_type, speed in speeds.items()
    }
    return job(name, gpus, **{"profiles": profiles, "gpu_types": tuple(speeds), "steps_total": 36_000, **more})


def _types(result: Plan) -> dict[str, str]:
    return {allocation.job: allocation.gpu_type for allocation in result.allocations}


def _late(result: Plan) -> dict[str, str]:
    return {late.job: late.reason for late in result.late}


def test_jobs_run_where_their_steps_are_cheapest_and_other_gpus_stay_idle_between_rounds_too() -> None:
    jobs = [_typed("a", V100=20.0, K80=10.0), _typed("b", V100=20.0, K80=10.0, arrival_s=1.0)]
    for mode in ("round", "fill"):
        result = planned(DEAR_AND_CHEAP, jobs, policy="min-cost", mode=mode)
        assert _types(result) == {"a": "K80"}, mode
        assert reasons(result) == {"b": "NotWorthItsPrice"}, mode


def test_who_runs_on_what_is_not_worth_its_price_goes_on_until_the_round_ends() -> None:
    running = _typed("a", V100=20.0, K80=10.0, running=holding("a", ("v", 1, 24, 500), gpu_type="V100"))
    assert _types(planned(DEAR_AND_CHEAP, [running], policy="min-cost", mode="fill")) == {"a": "V100"}
    assert _types(planned(DEAR_AND_CHEAP, [running], policy="min-cost")) == {"a": "K80"}


def test_a_deadline_pays_for_the_dear_type_and_only_where_it_is_needed() -> None:
    urgent = _typed("urgent", V100=20.0, K80=10.0, deadline_s=0.55 * HOUR)
    easy = _typed("easy", V100=20.0, K80=10.0, deadline_s=100 * HOUR)
    assert _types(planned(DEAR_AND_CHEAP, [urgent, easy], policy="min-cost-slo")) == {"urgent": "V100", "easy": "K80"}
    assert _types(planned(DEAR_AND_CHEAP, [urgent], policy="min-cost")) == {"urgent": "K80"}


def test_what_costs_the_same_on_both_types_uses_both_and_nobody_waits_for_another_kind_of_job() -> None:
    jobs = [_typed("same", V100=40.0, K80=10.0), _typed("only", V100=1.0), _typed("slow", K80=0.01)]
    nodes = (node("v", 2, gpu_type="V100", price_per_hour=4.0), DEAR_AND_CHEAP[1])
    types = _types(planned(nodes, jobs, policy="min-cost"))
    assert types == {"same": "V100", "only": "V100", "slow": "K80"}


def test_turns_on_the_cheapest_type_are_fair() -> None:
    jobs = [_typed(f"j{index}", V100=20.0, K80=10.0 + index, steps_total=10**9) for index in range(3)]
    ran: Counter[str] = Counter()
    for number in range(30):
        snapshot = Snapshot(nodes=DEAR_AND_CHEAP, jobs=tuple(jobs), now=number * 300.0)
        held = {a.job: a for a in plan(snapshot, PlanConfig(policy="min-cost")).allocations}
        assert {allocation.gpu_type for allocation in held.values()} == {"K80"}
        ran.update(held.keys())
        jobs = [_after(one, held.get(one.name), 300.0) for one in jobs]
    assert set(ran) == {"j0", "j1", "j2"}
    assert all(9 <= rounds <= 11 for rounds in ran.values())


@pytest.mark.parametrize("policy", ["las", "max-min-fairness", "min-cost-slo"])
def test_deadlines_that_nothing_can_keep_are_told_under_every_policy(policy: str) -> None:
    jobs = [
        _typed("past", K80=10.0, deadline_s=-1.0),
        _typed("tight", V100=20.0, K80=10.0, deadline_s=0.4 * HOUR),
        _typed("whenever", V100=20.0, K80=10.0),
        job("unknown", deadline_s=10.0),
    ]
    result = planned(DEAR_AND_CHEAP, jobs, policy=policy, mechanism="proportional")
    assert _late(result) == {"past": "DeadlinePast", "tight": "DeadlineTooTight"}
    assert "more time" in next(late.message for late in result.late if late.job == "tight")


def test_what_runs_faster_than_its_share_is_not_called_late() -> None:
    allocation = replace(holding("a", ("k", 1, 24, 500), gpu_type="K80"), steps_per_s=30.0)
    one = _typed("a", K80=10.0, deadline_s=0.5 * HOUR)
    assert _late(planned(DEAR_AND_CHEAP, [one])) == {"a": "DeadlineTooTight"}
    assert _late(planned(DEAR_AND_CHEAP, [replace(one, running=allocation)])) == {}


def test_of_deadlines_that_collide_as_many_as_possible_are_kept() -> None:
    """Two of three equal jobs can have a GPU each all the time; a late one gets what they leave, which is nothing."""
    nodes = (node("v", 2, gpu_type="V100", price_per_hour=4.0),)
    jobs = [_typed(f"j{index}", V100=20.0, deadline_s=0.6 * HOUR, arrival_s=index) for index in range(3)]
    past = _typed("past", V100=20.0, deadline_s=-5.0)
    result = planned(nodes, [past, *jobs], policy="min-cost-slo")
    assert _types(result).keys() == {"j0", "j1"}
    assert _late(result) == {"j2": "DeadlinesCollide", "past": "DeadlinePast"}


@pytest.mark.parametrize("aware", [True, False])
def test_who_is_late_runs_as_soon_as_nobody_else_needs_the_time(aware: bool) -> None:
    jobs = [_typed("late", V100=20.0, K80=10.0, deadline_s=-5.0), _typed("cheap", K80=100.0)]
    result = planned(DEAR_AND_CHEAP, jobs, policy="min-cost-slo", aware=aware)
    assert "late" in _types(result)


def test_deadlines_are_kept_in_rounds_though_they_need_both_types_in_turns() -> None:
    """Each needs 15 of 20 steps per second on average: half the time on each type."""
    jobs = [_typed(f"j{index}", V100=20.0, K80=10.0, deadline_s=0.8 * HOUR) for index in range(2)]
    now, round_s = 0.0, 120.0
    while jobs:
        assert now <= 0.8 * HOUR
        snapshot = Snapshot(nodes=DEAR_AND_CHEAP, jobs=tuple(jobs), now=now, round_s=round_s)
        held = {a.job: a for a in plan(snapshot, PlanConfig(policy="min-cost-slo", mechanism="tune")).allocations}
        now += round_s
        jobs = [_after(one, held.get(one.name), round_s) for one in jobs]
        jobs = [one for one in jobs if one.steps_done < (one.steps_total or 0)]


def _after(one: Job, allocation: Any, seconds: float) -> Job:
    if allocation is None:
        return replace(one, running=None)
    received = {**one.received_s, allocation.gpu_type: one.received_s.get(allocation.gpu_type, 0.0) + seconds}
    done = one.steps_done + round(allocation.steps_per_s * seconds)
    return replace(one, running=allocation, received_s=received, steps_done=done)


def test_who_has_not_a_round_to_lose_comes_before_who_is_further_behind_its_share() -> None:
    """Of two V100s one is for `spoilt` all the time, which has had a lot, and one for two others, which had nothing."""
    spoilt = _typed("spoilt", V100=20.0, deadline_s=0.55 * HOUR, arrival_s=-HOUR, received_s={"V100": HOUR})
    others = [_typed(f"other{index}", V100=20.0, arrival_s=-HOUR) for index in range(2)]
    nodes = (node("v", 2, gpu_type="V100", price_per_hour=4.0),)
    assert "spoilt" in _types(planned(nodes, [spoilt, *others], policy="min-cost-slo"))
    in_no_hurry = replace(spoilt, deadline_s=50 * HOUR)
    assert "spoilt" not in _types(planned(nodes, [in_no_hurry, *others], policy="min-cost-slo"))


def test_a_type_without_a_price_is_named() -> None:
    with pytest.raises(FieldError, match=r"nodes: of type K80 lack price_per_hour; min-cost needs the price"):
        planned([DEAR_AND_CHEAP[0], node("k", 1, gpu_type="K80")], [_typed("a", K80=1.0)], policy="min-cost")


def test_tenants_share_by_weight_and_one_that_is_not_named_has_weight_1() -> None:
    nodes = (node("n"),)
    jobs = [_typed(f"{tenant}{index}", V100=1.0, tenant=tenant) for tenant in ("a", "b", "c") for index in range(12)]
    tenants, ran = (Tenant("a", 5.0), Tenant("b", 2.0, "fifo"), Tenant("z")), []
    for number in range(24):
        snapshot = Snapshot(nodes=nodes, jobs=tuple(jobs), now=number * 300.0, tenants=tenants)
        held = {
            a.job: a for a in plan(snapshot, PlanConfig(policy="hierarchical", mechanism="proportional")).allocations
        }
        ran += held
        jobs = [_after(one, held.get(one.name), 300.0) for one in jobs]
    of_tenant = Counter(name[0] for name in ran)
    assert {tenant: count / 24 for tenant, count in of_tenant.items()} == pytest.approx(
        {"a": 5, "b": 2, "c": 1}, abs=0.5
    )
    assert {name for name in ran if name[0] == "b"} == {"b0", "b1"}


def _memory(seconds: float) -> Memory:
    memory = Memory()
    memory.solutions.budget = Budget(lambda: seconds)
    return memory


def test_out_of_time_the_last_allocation_serves_and_the_plan_says_so() -> None:
    jobs = (_typed("a", V100=20.0, K80=10.0), _typed("b", V100=10.0, K80=10.0))
    snapshot = Snapshot(nodes=DEAR_AND_CHEAP, jobs=jobs)
    config = PlanConfig(policy="makespan", mechanism="proportional")
    memory = _memory(float("inf"))
    assert plan(snapshot, config, memory).shares_from == ""
    memory.solutions.budget = Budget(lambda: 0.0)
    later = replace(snapshot, now=100.0, jobs=(*jobs, _typed("new", V100=1.0)))
    served = plan(later, config, memory)
    assert served.shares_from == "last"
    assert _types(served) == _types(plan(snapshot, config))
    assert plan(later, config, _memory(0.0)).shares_from == "isolated"
    assert len(plan(later, config, _memory(0.0)).allocations) == 2, "no GPU is idle for want of a solution"


@pytest.mark.parametrize("policy", ["max-min-fairness", "min-cost-slo"])
def test_a_solver_that_does_not_cope_stops_nobody(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def gives_up(*_: Any, **__: Any) -> None:
        raise InfeasibleError

    snapshot = Snapshot(nodes=DEAR_AND_CHEAP, jobs=(_typed("a", V100=20.0, deadline_s=HOUR),))
    monkeypatch.setattr(Programme, "solve", gives_up)
    result = plan(snapshot, PlanConfig(policy=policy), _memory(float("inf")))
    assert (result.shares_from, _types(result)) == ("isolated", {"a": "V100"})


@pytest.mark.parametrize("policy", ["allox", "makespan", "sjf", "finish-time-fairness"])
def test_a_job_without_an_end_and_with_any_time_behind_it_has_a_finite_rest(policy: str) -> None:
    old = replace(_typed("old", V100=1e9), received_s={"V100": 1e300}, steps_total=None)
    result = plan(Snapshot(nodes=DEAR_AND_CHEAP, jobs=(old,)), PlanConfig(policy=policy))
    assert _types(result) == {"old": "V100"}


def test_deadlines_that_are_not_looked_at_in_time_stop_nobody() -> None:
    snapshot = Snapshot(nodes=DEAR_AND_CHEAP, jobs=(_typed("a", V100=20.0, deadline_s=HOUR),))
    result = plan(snapshot, PlanConfig(policy="min-cost-slo"), _memory(0.0))
    assert (result.shares_from, _types(result)) == ("isolated", {"a": "V100"})


def test_an_allocation_is_used_again_while_nothing_changes_that_its_policy_looks_at() -> None:
    jobs = (_typed("a", V100=20.0, K80=10.0), _typed("b", V100=10.0, K80=10.0))
    snapshot = Snapshot(nodes=DEAR_AND_CHEAP, jobs=jobs)
    later = replace(snapshot, now=100.0, jobs=tuple(replace(one, steps_done=5) for one in jobs))
    for policy, again in (("max-min-fairness-water-filling", True), ("finish-time-fairness", False)):
        memory = _memory(float("inf"))
        config = PlanConfig(policy=policy, mechanism="proportional")
        plan(snapshot, config, memory)
        memory.solutions.budget = Budget(lambda: 0.0)  # nothing new can be found
        assert (plan(later, config, memory).shares_from == "") is again, policy
        assert plan(replace(later, jobs=jobs[:1]), config, memory).shares_from == "last"
