"""Counting GPUs finds the plan that the general way finds."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.planner.planning import job, node
from support.planner.snapshots import TYPES, clocks, jobs, later, queue_settings
from synergy_core import plan as planner
from synergy_core.cache import Memory
from synergy_core.mechanisms.whole_gpus import WholeGpus, whole_gpus
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Node, Snapshot
from synergy_core.plan import plan
from synergy_core.policies import POLICIES
from synergy_core.policies.rounds.time_shares import BY_COST, NAMES

_ANYWHERE: dict[str, Any] = {"preemptible": True, "nodes": None, "measured": {}}


@st.composite
def _nodes(draw: st.DrawFn) -> tuple[Node, ...]:
    """Nodes that are alike within each GPU type."""
    found: list[Node] = []
    for gpu_type in sorted(draw(st.sets(st.sampled_from(TYPES), min_size=1))):
        gpus, cpus, gib = draw(st.sampled_from((1, 2, 4, 8))), draw(st.integers(8, 50)), draw(st.integers(8, 500))
        count, price = draw(st.integers(1, 4)), draw(st.sampled_from((0.5, 2.0)))
        found += [
            node(f"{gpu_type}-{index}", gpus, cpus=cpus, gib=gib, gpu_type=gpu_type, price_per_hour=price)
            for index in range(count)
        ]
    return tuple(found)


@st.composite
def _jobs(draw: st.DrawFn, prefix: str) -> tuple[Job, ...]:
    """Jobs that may run anywhere; now and then one that may not."""
    drawn = [draw(jobs(f"{prefix}{index}", plain=True)) for index in range(draw(st.integers(0, 10)))]
    return tuple(
        one
        if draw(st.integers(0, 40)) == 0
        else replace(one, **_ANYWHERE, placement=draw(st.sampled_from(("auto", "auto", "spread"))))
        for one in drawn
    )


_CONFIGS = st.builds(
    PlanConfig,
    policy=st.sampled_from(sorted(POLICIES)),
    mechanism=st.just("proportional"),
    mode=st.sampled_from(("round", "round", "fill")),
    queues=queue_settings,
    aware=st.booleans(),
    explain=st.just(False),
)


def _generally(snapshot: Snapshot, config: PlanConfig, memory: Memory) -> Plan:
    """The plan of the general way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "whole_gpus", lambda *_: None)
        return plan(snapshot, config, memory)


@settings(max_examples=30)
@given(_nodes(), _jobs("a"), _CONFIGS, st.data())
def test_counting_finds_the_same_plans(
    nodes: tuple[Node, ...], queue: tuple[Job, ...], config: PlanConfig, data: st.DataObject
) -> None:
    counting, general = Memory(), Memory()
    snapshot = Snapshot(nodes=nodes, jobs=queue)
    for step in range(3):
        answer = plan(snapshot, config, counting)
        assert answer == _generally(snapshot, config, general)
        stay = tuple(one for one in later(snapshot, answer).jobs if data.draw(st.integers(0, 3)) > 0)
        aged = tuple(replace(one, **data.draw(clocks(ran=one.running is not None))) for one in stay)
        snapshot = replace(snapshot, jobs=aged + data.draw(_jobs(f"b{step}")), now=snapshot.now + snapshot.round_s)
        config = replace(config, mode=data.draw(st.sampled_from(("round", "round", "fill"))))


def _counts(monkeypatch: pytest.MonkeyPatch, nodes: tuple[Node, ...], queue: tuple[Job, ...], **options: Any) -> bool:
    """Whether a plan was made by counting GPUs."""
    found: list[WholeGpus | None] = []

    def noted(*args: Any) -> WholeGpus | None:
        found.append(whole_gpus(*args))
        return found[-1]

    monkeypatch.setattr(planner, "whole_gpus", noted)
    settings_ = {"policy": "fifo", "mechanism": "proportional", "explain": False, **options}
    plan(Snapshot(nodes=nodes, jobs=queue), PlanConfig(**settings_))
    return any(one is not None for one in found)


ALIKE = (node("n1", 4), node("n2", 4))


@pytest.mark.parametrize("policy", sorted({"fifo", "srtf", "las", *NAMES} - BY_COST))
def test_usual_rounds_are_counted(monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    assert _counts(monkeypatch, ALIKE, (job("a"), job("b", 6), job("c", 2)), policy=policy)


@pytest.mark.parametrize(
    ("nodes", "queue", "options"),
    [
        ((node("n1", 4), node("n2", 8)), (job("a"),), {}),
        ((node("n1", 4), node("n2", 4, schedulable=False)), (job("a"),), {}),
        (ALIKE, (job("a", nodes=("n1",)),), {}),
        (ALIKE, (job("a", 2, placement="consolidate"),), {}),
        (ALIKE, (job("a", cpu_millis_max=500),), {}),
        (ALIKE, (job("a", cpu_millis_min=20_000),), {}),
        (ALIKE, (job("a", purpose="profile"),), {}),
        (ALIKE, (job("a"),), {"mechanism": "tune"}),
        (ALIKE, (job("a"),), {"explain": True}),
        (ALIKE, (job("a"),), {"policy": "yarn-cs"}),
    ],
)
def test_other_rounds_are_not(
    monkeypatch: pytest.MonkeyPatch, nodes: tuple[Node, ...], queue: tuple[Job, ...], options: dict[str, Any]
) -> None:
    assert not _counts(monkeypatch, nodes, queue, **options)


def test_a_displaced_job_is_named_with_the_job_that_has_its_place() -> None:
    memory, nodes = Memory(), (node("n1", 2),)
    config = PlanConfig(policy="srtf", mechanism="proportional", explain=False)
    long = Snapshot(nodes=nodes, jobs=(job("long", 2, steps_total=1000, wants=(1, 1)),))
    running = later(long, plan(long, config, memory))
    both = replace(running, jobs=(*running.jobs, job("short", steps_total=1, wants=(1, 1))))
    answer = plan(both, config, memory)
    assert answer.preempted == ("long",)
    assert [(one.job, one.cause, one.by) for one in answer.displaced] == [("long", "order", ("short",))]
