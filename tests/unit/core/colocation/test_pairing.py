"""Who shares a GPU, on small clusters."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from support.planner.snapshots import GIB, later
from synergy_core.cache import Memory
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.measurement import Observation
from synergy_core.model.snapshot import Job, Node, Profile, Shared, Snapshot
from synergy_core.model.usage import Usage
from synergy_core.plan import plan

AUTO = PlanConfig(policy="fifo", colocation="auto")
THESIS = replace(AUTO, colocation="thesis")


def node(name: str = "n1", **changes: Any) -> Node:
    one = Node(
        name=name,
        gpu_type="V100",
        gpus=1,
        cpu_millis=8000,
        memory_bytes=64 * GIB,
        replicas=2,
        gpu_memory_bytes=16 * GIB,
    )
    return replace(one, **changes)


def job(name: str, compute: float = 0.3, *, cpu: int = 1000, memory: int = 4 * GIB, **changes: Any) -> Job:
    """A job that is fastest (10 steps/s) from `cpu` milli-CPU on."""
    profile = Profile(cpu_millis=(cpu,), memory_bytes=(GIB,), steps_per_s=((10.0,),))
    usage = {"V100": Usage(compute=compute, bandwidth=compute / 2, memory_bytes=memory)}
    one = Job(name=name, gpus=1, tenant="t", sharing=True, profiles={"V100": profile}, usage=usage)
    return replace(one, **changes)


def planned(
    jobs: Sequence[Job], nodes: Sequence[Node] = (node(),), config: PlanConfig = AUTO, now: float = 0.0
) -> Plan:
    return plan(Snapshot(nodes=tuple(nodes), jobs=tuple(jobs), now=now), config)


def partners(result: Plan) -> dict[str, tuple[str, ...]]:
    return {one.job: one.partners for one in result.allocations}


@pytest.mark.parametrize("config", [AUTO, THESIS])
def test_two_light_jobs_share_where_one_would_wait(config: PlanConfig) -> None:
    result = planned([job("a"), job("b")], config=config)
    assert partners(result) == {"a": ("b",), "b": ("a",)}
    assert [one.shares_gpu_with for one in result.allocations] == ["b", "a"]
    assert all(9.0 < one.steps_per_s <= 10.0 == one.proportional_steps_per_s for one in result.allocations)
    assert sum(one.workers[0].cpu_millis for one in result.allocations) <= 8000


def test_with_a_gpu_for_each_nobody_shares() -> None:
    jobs = [job("a"), job("b")]
    shared = later(Snapshot(nodes=(node(),), jobs=tuple(jobs)), planned(jobs))
    assert partners(planned(jobs, [node("n1"), node("n2")])) == {"a": (), "b": ()}
    # and those who do are parted when a GPU falls free: the first in line stays
    again = plan(replace(shared, nodes=(node("n1"), node("n2"))), AUTO)
    assert partners(again) == {"a": (), "b": ()}
    assert again.preempted == ("b",)
    assert {one.job: one.workers[0].node for one in again.allocations} == {"a": "n1", "b": "n2"}


def test_in_the_thesis_with_a_gpu_for_each_nobody_begins_to_share() -> None:
    assert partners(planned([job("a"), job("b")], [node("n1"), node("n2")], THESIS)) == {"a": (), "b": ()}


def test_in_the_thesis_jobs_stay_with_their_own_partners_where_gpus_are_free() -> None:
    jobs = [job("a"), job("b", 0.31), job("c", 0.29), job("d")]
    first = Snapshot(nodes=(node("n1"), node("n2")), jobs=tuple(jobs))
    running = later(first, plan(first, THESIS))
    together = {one.name: one.running.partners for one in running.jobs if one.running}
    assert together == {"a": ("c",), "c": ("a",), "b": ("d",), "d": ("b",)}
    again = plan(replace(running, nodes=tuple(node(f"n{index}") for index in range(1, 5))), THESIS)
    assert (partners(again), again.preempted) == (together, ())


def test_heavy_jobs_wait_instead() -> None:
    result = planned([job("a", 0.95), job("b", 0.95, min_throughput_fraction=0.85), job("c", 0.95)])
    assert partners(result)["a"] in ((), ("c",))
    assert "b" in {one.job for one in result.waiting}


def test_the_thesis_stops_at_the_first_that_would_not_gain() -> None:
    # 1.156 - 0.248 * sum of compute: two of compute 1 keep 0.66 each, three would keep 0.41 of which delta is 1.2
    nodes = (node(replicas=9, gpu_memory_bytes=64 * GIB),)
    result = planned([job(name, 1.0) for name in "abcdef"], nodes, THESIS)
    shared = [one for one in result.allocations if one.partners]
    assert len(shared) == 3
    assert {len(one.partners) for one in shared} == {2}


def _with_iterations_of(seconds: float, name: str) -> Job:
    profile = Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((1.0 / seconds,),))
    return job(name, profiles={"V100": profile}, usage={"V100": Usage(compute=1.0, bandwidth=0.5, memory_bytes=GIB)})


@dataclass(frozen=True)
class _Keeps:
    """A predictor: every job keeps the same fraction."""

    fraction: float

    def fractions(self, usages: Sequence[Usage]) -> tuple[float, ...]:
        return (self.fraction,) * len(usages)

    def corrected(self, observations: Sequence[Observation]) -> "_Keeps":
        return self


def test_delta_of_the_thesis_goes_by_iteration_times() -> None:
    # iterations of 20 and 60 ms at 0.6 of the speed: (20 + 60) / (60 / 0.6) = 0.8, so one after the other is better
    jobs = [_with_iterations_of(0.020, "a"), _with_iterations_of(0.060, "b")]
    config = replace(THESIS, predictors={"V100": _Keeps(0.6)})
    assert partners(planned(jobs, config=config)) == {"a": ()}
    # as if all iterations took equally long: 2 * 0.6 = 1.2
    fractions = replace(config, colocation="thesis-fractions")
    assert partners(planned(jobs, config=fractions)) == {"a": ("b",), "b": ("a",)}
    # and with equally long ones both forms agree
    alike = [_with_iterations_of(0.060, name) for name in "ab"]
    assert partners(planned(alike, config=config)) == {"a": ("b",), "b": ("a",)}


@pytest.mark.parametrize(
    ("fraction", "least", "stays"),
    [(0.6, 0.6, True), (0.52, 0.5, True), (0.6, 0.7, False), (0.45, 0.0, False), (0.5, 0.5, False)],
)
def test_a_pair_stays_while_it_gains_and_both_keep_enough(fraction: float, least: float, stays: bool) -> None:
    """Both conditions hold by themselves: enough is kept and something is gained; at twice 0.5 nothing is."""
    jobs = (job("a", min_throughput_fraction=least), job("b", min_throughput_fraction=least))
    first = Snapshot(nodes=(node(),), jobs=jobs)
    running = later(first, plan(first, replace(AUTO, predictors={"V100": _Keeps(0.9)})))
    result = plan(running, replace(AUTO, predictors={"V100": _Keeps(fraction)}))
    assert partners(result) == ({"a": ("b",), "b": ("a",)} if stays else {"a": ()})


def test_without_iteration_times_the_fractions_stand_in_and_the_plan_says_so() -> None:
    known, unknown = _with_iterations_of(0.020, "a"), replace(_with_iterations_of(0.060, "b"), profiles={})
    config = replace(THESIS, predictors={"V100": _Keeps(0.6)})
    result = planned([known, unknown], config=config)
    assert partners(result) == {"a": ("b",), "b": ("a",)}
    assert {one.job: one.delta_by_fractions for one in result.allocations} == {"a": True, "b": True}
    snapshot = later(Snapshot(nodes=(node(),), jobs=(known, unknown)), result)
    alone = replace(snapshot.jobs[0], running=planned([known], config=config).allocations[0])
    joined = planned([alone, unknown], config=config)  # as it is for one that ran alone until now
    assert {one.job: one.delta_by_fractions for one in joined.allocations} == {"a": True, "b": True}
    again = plan(snapshot, config)  # the pair stays, and nothing about it changes
    assert again.allocations == result.allocations
    asked_for = planned([known, unknown], config=replace(config, colocation="thesis-fractions"))
    assert not any(one.delta_by_fractions for one in asked_for.allocations)


def test_a_job_that_a_partner_joins_has_the_speed_that_it_keeps() -> None:
    first = Snapshot(nodes=(node(),), jobs=(job("a"),))
    config = replace(AUTO, predictors={"V100": _Keeps(0.8)})
    running = later(first, plan(first, config)).jobs
    speeds = {one.job: one.steps_per_s for one in planned([*running, job("b")], config=config).allocations}
    assert speeds == pytest.approx({"a": 8.0, "b": 8.0})


def test_three_share_where_replicas_allow() -> None:
    jobs = [job(name, 0.1, cpu=2000) for name in "abc"]
    result = planned(jobs, [node(replicas=3)])
    assert partners(result) == {"a": ("b", "c"), "b": ("a", "c"), "c": ("a", "b")}
    assert len(planned(jobs, [node(replicas=2)]).waiting) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"sharing": False},
        {"preemptible": False},
        {"tenant": "other"},
        {"tenant": "other", "sharing_across_tenants": True},
        {"usage": {}},
        {"nodes": ("n2",)},
        {"gpus": 2},
    ],
)
def test_who_may_not_share_does_not(changes: dict[str, Any]) -> None:
    result = planned([job("a"), replace(job("b"), **changes)])
    assert partners(result) == {"a": ()}


def test_tenants_share_where_both_allow_it() -> None:
    a, b = (job(name, tenant=name, sharing_across_tenants=True) for name in "ab")
    assert partners(planned([a, b])) == {"a": ("b",), "b": ("a",)}


def test_gpu_memory_is_never_over_committed() -> None:
    jobs = [job("a", memory=10 * GIB), job("b", memory=7 * GIB), job("c", memory=6 * GIB)]
    assert partners(planned(jobs)) == {"a": ("c",), "c": ("a",)}
    assert partners(planned(jobs, [node(gpu_memory_bytes=0)])) == {"a": ()}


def test_a_job_that_waits_for_its_data_loses_nothing_to_a_partner() -> None:
    # at its share, 12 cores, it makes 15 of the 20 steps that the GPU could: three quarters of the GPU are enough
    slow = job("a", 0.9, profiles={"V100": _linear(16000)})
    other = job("b", 0.5, cpu=1000)
    result = planned([slow, other], [node(cpu_millis=12000)])
    assert partners(result) == {"a": ("b",), "b": ("a",)}
    told = {one.job: one.steps_per_s / one.proportional_steps_per_s for one in result.allocations}
    assert told["a"] > 0.9


def _linear(cpu: int) -> Profile:
    return Profile(cpu_millis=(cpu,), memory_bytes=(GIB,), steps_per_s=((20.0,),))


def _measured(name: str, partner: Job, fraction: float, at_s: float) -> Job:
    seen = Shared(
        gpu_type="V100", partners=(partner.name,), usages=(partner.usage["V100"],), fraction=fraction, at_s=at_s
    )
    return job(name, shared=(seen,))


def test_a_pair_that_does_worse_than_predicted_is_split_and_not_tried_again_soon() -> None:
    first = Snapshot(nodes=(node(),), jobs=(job("a"), job("b")))
    running = {one.name: one.running for one in later(first, plan(first, AUTO)).jobs}
    a, b = (_measured(one, job(other), 0.45, 300.0) for one, other in (("a", "b"), ("b", "a")))
    together = [replace(one, running=running[one.name]) for one in (a, b)]
    result = planned(together, now=300.0)
    assert partners(result) == {"a": ()}
    assert result.preempted == ("b",)
    assert partners(planned([a, b], now=3000.0)) == {"a": ()}
    # b may join somebody else meanwhile, and a again later if what was seen still lets it
    assert partners(planned([a, b, job("c", 0.05)], now=3000.0)).get("a") == ("c",)


def test_a_pair_that_does_better_than_predicted_shares() -> None:
    heavy = [job("a", 1.0, min_throughput_fraction=0.8), job("b", 1.0, min_throughput_fraction=0.8)]
    assert partners(planned(heavy)) == {"a": ()}
    seen = [
        replace(one, shared=(replace(_measured("x", other, 0.9, 0.0).shared[0]),))
        for one, other in (heavy, reversed(heavy))
    ]
    assert partners(planned(seen)) == {"a": ("b",), "b": ("a",)}


def test_who_shared_stays_together() -> None:
    jobs = [job("a"), job("b", 0.31), job("c", 0.29), job("d")]
    nodes = [node("n1"), node("n2")]
    first = Snapshot(nodes=tuple(nodes), jobs=tuple(jobs))
    running = later(first, plan(first, AUTO))
    again = plan(running, AUTO)
    assert again.preempted == ()
    assert partners(again) == {one.name: one.running.partners for one in running.jobs if one.running}


def test_the_last_of_a_pair_goes_on_alone_where_it_is() -> None:
    first = Snapshot(nodes=(node(),), jobs=(job("a"), job("b")))
    left = replace(later(first, plan(first, AUTO)), jobs=later(first, plan(first, AUTO)).jobs[1:])
    for mode in ("fill", "round"):
        result = plan(left, replace(AUTO, mode=mode))  # type: ignore[arg-type]
        assert partners(result) == {"b": ()}
        assert result.preempted == ()


def test_a_pair_gets_cpu_beyond_its_share_that_makes_it_faster() -> None:
    """Of two GPUs with 4 CPUs each; the job on the other GPU needs one CPU."""
    alone, *pair = job("alone", sharing=False), job("a", cpu=3000), job("b", cpu=3000)
    pair = [replace(one, arrival_s=1.0, min_throughput_fraction=0.5) for one in pair]
    result = planned([alone, *pair], [node(gpus=2)], replace(AUTO, mechanism="tune"))
    assert partners(result) == {"alone": (), "a": ("b",), "b": ("a",)}
    cpu = {one.job: one.workers[0].cpu_millis for one in result.allocations}
    assert (cpu["a"], cpu["b"]) == (3000, 3000)


def test_nobody_gets_more_than_its_own_bounds_and_a_bound_job_is_measured_by_them() -> None:
    few = {"cpu_millis_max": 500}
    result = planned([job("a", cpu=4000, **few), job("b", cpu=4000, **few)])
    assert partners(result) == {"a": ("b",), "b": ("a",)}
    assert [one.workers[0].cpu_millis for one in result.allocations] == [500, 500]
    assert all(one.steps_per_s == one.proportional_steps_per_s == 1.25 for one in result.allocations)


@pytest.mark.parametrize("config", [AUTO, THESIS, PlanConfig(policy="max-min-fairness", colocation="gavel")])
def test_nobody_shares_where_its_speed_is_only_estimated(config: PlanConfig) -> None:
    """There it has its whole share, which it would not have beside a partner."""
    nodes, memory = (node(), node("n2", gpu_type="K80")), Memory()
    both = {gpu_type: job("x").profiles["V100"] for gpu_type in ("K80", "V100")}
    reference, *others = (
        job(name, usage=dict.fromkeys(both, job("x").usage["V100"]), gpu_types=tuple(both)) for name in "abc"
    )
    reference = replace(reference, profiles=both, nodes=("n2",))
    others = [replace(one, profiles={"K80": both["K80"]}, nodes=("n1",)) for one in others]
    guessed = plan(Snapshot(nodes=nodes, jobs=(reference, *others)), config, memory)
    (held,) = (one for one in guessed.allocations if one.estimated)
    assert (held.workers[0].cpu_millis, held.workers[0].memory_bytes) == (8000, 64 * GIB)
    assert set(partners(guessed).values()) == {()}
    known = [replace(one, measured={"V100": 10.0}) for one in others]
    measured = plan(Snapshot(nodes=nodes, jobs=(reference, *known)), config, memory)
    assert partners(measured) == {"a": (), "b": ("c",), "c": ("b",)}
