"""What MPS' limit on a client's threads costs a job, alone and beside others, and which nodes jobs rather have."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.planner.snapshots import GIB
from synergy_core.cache import Memory
from synergy_core.colocation.rules import Rules
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Allocation, Job, Node, Profile, Shared, Snapshot
from synergy_core.model.usage import Usage
from synergy_core.plan import plan
from synergy_core.throughput.threads import ceiling, least_percent

AUTO = PlanConfig(policy="fifo", colocation="auto")
X = PlanConfig(policy="max-min-fairness", colocation="gavel")
LIGHT, HEAVY = 0.3, 0.9


def node(name: str, gpus: int = 1, clients: int = 1, percent: int | None = None) -> Node:
    return Node(
        name=name,
        gpu_type="V100",
        gpus=gpus,
        cpu_millis=8000 * gpus,
        memory_bytes=64 * GIB * gpus,
        replicas=clients,
        gpu_memory_bytes=32 * GIB,
        client_thread_percent=100 // clients if percent is None else percent,
    )


def job(name: str, compute: float = HEAVY, **changes: Any) -> Job:
    """A job of 10 steps/s on a GPU of its own."""
    profile = Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((10.0,),))
    usage = {"V100": Usage(compute=compute, bandwidth=compute / 2, memory_bytes=4 * GIB)}
    return replace(Job(name=name, gpus=1, tenant="t", sharing=True, profiles={"V100": profile}, usage=usage), **changes)


def planned(jobs: list[Job], nodes: list[Node], config: PlanConfig = AUTO) -> Plan:
    return plan(Snapshot(nodes=tuple(nodes), jobs=tuple(jobs)), config)


def places(result: Plan) -> dict[str, str]:
    return {one.job: one.workers[0].node for one in result.allocations}


def test_a_client_does_no_more_on_the_gpu_than_its_threads_can() -> None:
    assert ceiling(Usage(compute=0.8, bandwidth=0), 50) == pytest.approx(0.625)
    assert ceiling(Usage(compute=0.5, bandwidth=0), 50) == ceiling(Usage(compute=0.0, bandwidth=0), 1) == 1.0
    assert ceiling(None, 50) == ceiling(Usage(compute=1.0, bandwidth=0), 100) == 1.0
    assert (least_percent([node("a"), node("b", clients=3)]), least_percent([])) == (33, 100)


@pytest.mark.parametrize("config", [AUTO, X, PlanConfig(policy="las", mechanism="tune")])
def test_a_job_alone_on_a_shared_gpu_is_planned_with_the_threads_that_it_has(config: PlanConfig) -> None:
    (one,) = planned([job("a")], [node("n", clients=2)], config).allocations
    assert one.steps_per_s == one.proportional_steps_per_s == pytest.approx(10 * 0.5 / HEAVY)
    (light,) = planned([job("a", LIGHT)], [node("n", clients=2)], config).allocations
    assert light.steps_per_s == 10.0
    (unknown,) = planned([job("a", usage={})], [node("n", clients=2)], config).allocations
    assert unknown.steps_per_s == 10.0
    # what was measured as it ran has the limit in it
    as_it_ran = job("a", profiles={}, gpu_types=("V100",), measured={"V100": 5.6})
    (measured,) = planned([as_it_ran], [node("n", clients=2)], config).allocations
    assert measured.steps_per_s == pytest.approx(5.6)


def measured_under(percent: int, name: str = "a", compute: float = HEAVY) -> Job:
    """The same job, of which profile runs that had so much of the threads have seen only what these allow."""
    known = 10 * ceiling(Usage(compute=compute, bandwidth=0), percent)
    profile = Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((known,),), client_thread_percent=percent)
    return job(name, compute, profiles={"V100": profile})


@pytest.mark.parametrize("config", [AUTO, X, PlanConfig(policy="las", mechanism="tune")])
def test_a_limit_under_which_a_job_was_measured_is_not_taken_twice(config: PlanConfig) -> None:
    whole = 10 / HEAVY
    for under, clients, speed in ((50, 2, 0.5), (33, 3, 0.33), (50, 3, 0.33), (33, 2, 0.33), (50, 1, 0.5)):
        (one,) = planned([measured_under(under)], [node("n", clients=clients)], config).allocations
        assert one.steps_per_s == one.proportional_steps_per_s == pytest.approx(speed * whole), (under, clients)


@pytest.mark.parametrize("config", [AUTO, X])
@pytest.mark.parametrize("clients", [2, 3])
def test_who_shares_is_planned_alike_whether_it_was_measured_with_the_limit_or_without(
    config: PlanConfig, clients: int
) -> None:
    nodes = [node("n", clients=clients)]
    with_limit = planned([measured_under(100 // clients, name) for name in "ab"], nodes, config)
    assert {one.job: one.partners for one in with_limit.allocations} == {"a": ("b",), "b": ("a",)}
    without = planned([job("a"), job("b")], nodes, config)
    assert [one.steps_per_s for one in with_limit.allocations] == pytest.approx(
        [one.steps_per_s for one in without.allocations]
    )


def test_what_was_measured_beside_others_is_of_the_speed_that_is_known() -> None:
    def told(own: Job, fraction: float) -> tuple[float, ...]:
        partner = Usage(compute=0.2, bandwidth=0.1, model="p")
        seen = Shared(gpu_type="V100", partners=("b",), usages=(partner,), fraction=fraction, at_s=0)
        a, c = replace(own, shared=(seen,), usage={"V100": replace(own.usage["V100"], model="m")}), job("c", 0.4)
        part = Rules([node("n", clients=2)], [a, c], AUTO, 0.0).predicted([a, c], "V100")
        return (10 * part[0], part[1])

    # 0.54 of the speed that half the threads leave is 0.3 of that on a whole GPU
    half = ceiling(Usage(compute=HEAVY, bandwidth=0), 50)
    with_limit, without = told(measured_under(50), 0.3 / half), told(job("a"), 0.3)
    assert (with_limit[0] * half, with_limit[1]) == pytest.approx(without)


def test_who_is_held_up_by_its_cpu_loses_nothing_to_a_limit_on_threads() -> None:
    profile = Profile(cpu_millis=(8000, 80000), memory_bytes=(GIB,), steps_per_s=((4.0,), (10.0,)))
    for config in (AUTO, X):
        (one,) = planned([job("a", profiles={"V100": profile})], [node("n", clients=2)], config).allocations
        assert one.steps_per_s == one.proportional_steps_per_s == 4.0, "half the threads are enough for 5.6"


@pytest.mark.parametrize("config", [AUTO, X])
def test_who_was_measured_without_a_matrix_has_a_speed_beside_others_too(config: PlanConfig) -> None:
    def pair(**changes: Any) -> dict[str, Allocation]:
        known = {"profiles": {}, "gpu_types": ("V100",), "measured": {"V100": 8.0}, **changes}
        result = planned([job("a", 0.3, **known), job("b", 0.3)], [node("n", clients=2, percent=100)], config)
        assert all(one.partners for one in result.allocations)
        return {one.job: one for one in result.allocations}

    rules = Rules([node("n", clients=2, percent=100)], [], AUTO, 0.0)
    both, kept = pair(), rules.predicted([job("a", 0.3)] * 2, "V100")
    assert kept[0] < 0.99
    assert both["a"].steps_per_s == pytest.approx(8.0 * kept[0])
    assert both["a"].proportional_steps_per_s == 8.0
    assert pair(measured={})["a"].steps_per_s == 0.0, "nobody knows"


@pytest.mark.parametrize("config", [AUTO, X])
def test_who_was_measured_under_a_limit_without_a_matrix_keeps_as_much_of_it_as_others(config: PlanConfig) -> None:
    slow = 10 * 0.5 / HEAVY
    known = {"profiles": {}, "gpu_types": ("V100",), "measured": {"V100": slow}}
    result = planned([job("a", **known), job("b")], [node("n", clients=2)], config)
    assert [one.steps_per_s for one in result.allocations] == pytest.approx([slow] * 2)
    assert all(one.partners for one in result.allocations)


def test_a_caller_s_memory_knows_who_was_measured_meanwhile() -> None:
    memory, nodes = Memory(), (node("n", clients=3),)
    own: dict[str, Any] = {"profiles": {}, "gpu_types": ("V100",)}
    for measured in ({}, {"V100": 1.0}):  # as fast as it was taken to be before
        snapshot = Snapshot(nodes=nodes, jobs=tuple(job(name, measured=measured, **own) for name in "ab"))
        assert plan(snapshot, X, memory) == plan(snapshot, X)


@pytest.mark.parametrize("config", [AUTO, X])
@pytest.mark.parametrize("clients", [2, 3])
def test_where_threads_are_limited_anyway_a_partner_costs_no_more(config: PlanConfig, clients: int) -> None:
    # of three clients each has a third: 0.37 of its speed, less than half of a whole GPU's, and alone no more
    result = planned([job("a"), job("b")], [node("n", clients=clients)], config)
    kept = 100 // clients / 100 / HEAVY
    assert {one.job: one.partners for one in result.allocations} == {"a": ("b",), "b": ("a",)}
    assert [one.steps_per_s for one in result.allocations] == pytest.approx([10 * kept] * 2)


def test_a_gpu_of_its_own_is_better_than_half_the_threads() -> None:
    # on a GPU of their own in turns each would have half its speed, on the shared one half the time 0.37
    result = planned([job("a"), job("b")], [node("n", clients=3), node("own")])
    assert {one.job: one.partners for one in result.allocations} == {"a": (), "b": ()}


def test_who_is_held_up_by_its_threads_tells_nothing_of_its_partners() -> None:
    def told(fraction: float, percent: int) -> tuple[float, ...]:
        partner = Usage(compute=0.2, bandwidth=0.1, model="p")
        seen = Shared(gpu_type="V100", partners=("b",), usages=(partner,), fraction=fraction, at_s=0)
        known = {"V100": Usage(compute=HEAVY, bandwidth=0.4, model="m")}
        a, c = job("a", shared=(seen,), usage=known), job("c", 0.4)
        return Rules([node("n", clients=2, percent=percent)], [a, c], AUTO, 0.0).predicted([a, c], "V100")

    without = Rules([node("n", clients=2)], [], AUTO, 0.0).predicted([job("a"), job("c", 0.4)], "V100")
    assert told(0.55, 50) == pytest.approx(without)
    assert told(0.3, 50)[1] < without[1] - 0.02, "slower than its threads"
    assert told(0.55, 100)[0] < told(0.8, 100)[0]


MECHANISMS = ("proportional", "tune", "greedy", "opt")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_who_shares_and_who_does_not_leave_each_other_their_nodes(mechanism: str) -> None:
    config = replace(AUTO, mechanism=mechanism)
    jobs = [job("alone", sharing=False), job("may", LIGHT), job("run", purpose="profile", profiles={}, usage={})]
    for names in (("a", "z"), ("z", "a")):
        shared, own = node(names[0], 2, 2), node(names[1], 2)
        assert places(planned(jobs, [shared, own], config)) == {"alone": own.name, "may": shared.name, "run": own.name}
        # where only the other kind has room, there
        full = replace(own, gpus_used=2)
        assert set(places(planned(jobs[:2], [shared, full], config)).values()) == {shared.name}
    # who would lose threads is better off on a GPU of its own while nobody shares with it
    assert places(planned([job("heavy")], [node("a", 2, 2), node("b", 2)], config)) == {"heavy": "b"}
    assert places(planned([job("heavy")], [node("a", 2, 2, percent=100), node("b", 2)], config)) == {"heavy": "a"}


def test_nobody_is_sent_anywhere_where_nobody_shares_and_nothing_is_limited() -> None:
    nodes = [node("a", 2, 2, percent=100), node("b", 2)]
    assert places(planned([job("x", sharing=False)], nodes, replace(AUTO, colocation="none"))) == {"x": "a"}
    limited = [node("a", 2, 2), node("b", 2)]
    assert places(planned([job("x")], limited, replace(AUTO, colocation="none"))) == {"x": "b"}


@st.composite
def mixed(draw: st.DrawFn) -> Snapshot:
    nodes = [
        node(f"n{index}", draw(st.integers(1, 3)), draw(st.sampled_from((1, 2, 3))))
        for index in range(draw(st.integers(2, 4)))
    ]
    jobs = [
        job(f"j{index}", draw(st.sampled_from((LIGHT, HEAVY))), sharing=draw(st.booleans()))
        for index in range(draw(st.integers(1, 8)))
    ]
    return Snapshot(nodes=tuple(nodes), jobs=tuple(jobs))


@settings(max_examples=50)
@given(mixed(), st.sampled_from(("none", "auto", "thesis")))
def test_who_does_not_share_blocks_a_shared_gpu_only_where_no_other_is_idle(snapshot: Snapshot, mode: str) -> None:
    config = PlanConfig(policy="fifo", mechanism="proportional", colocation=mode)  # type: ignore[arg-type]
    result = plan(snapshot, config)
    nodes, jobs = ({one.name: one for one in of} for of in (snapshot.nodes, snapshot.jobs))
    taken = dict.fromkeys(nodes, 0.0)
    for one in result.allocations:
        taken[one.workers[0].node] += 1 / (1 + len(one.partners))
    idle = {name for name in nodes if taken[name] < nodes[name].gpus - 0.5}
    for one in result.allocations:
        there = nodes[one.workers[0].node]
        if not jobs[one.job].sharing and there.replicas > 1:
            assert not any(nodes[name].replicas == 1 for name in idle)
    assert not (idle and result.waiting), "nobody waits for that"
    running = {one.job: one for one in result.allocations}
    later = replace(
        snapshot, now=300.0, jobs=tuple(replace(one, running=running.get(one.name)) for one in jobs.values())
    )
    for one in (*result.allocations, *plan(later, config).allocations):
        assert len(one.partners) < nodes[one.workers[0].node].replicas, "not on a GPU for fewer clients"


@pytest.mark.parametrize("mode", ["auto", "thesis"])
def test_of_more_pairs_than_gpus_that_can_be_shared_the_rest_have_gpus_alone(mode: str) -> None:
    config = PlanConfig(policy="fifo", mechanism="proportional", colocation=mode)  # type: ignore[arg-type]
    jobs = [job(name, LIGHT) for name in "abcd"]
    result = planned(jobs, [node("own"), node("shared", clients=2)], config)
    assert len(result.allocations) == 3
    assert {one.workers[0].node for one in result.allocations if one.partners} == {"shared"}
    assert len(result.waiting) == 1
    # who shares stays, and so does who does not
    running = {one.job: one for one in result.allocations}
    again = planned(
        [replace(one, running=running.get(one.name)) for one in jobs], [node("own"), node("shared", clients=2)], config
    )
    assert again.allocations == result.allocations
    assert again.preempted == ()
