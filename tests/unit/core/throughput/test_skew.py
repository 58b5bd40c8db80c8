"""Who lies close together: jobs with one large tensor on the fewest nodes, others on what is left (section 3.3)."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings

from support.planner.planning import GIB, holding, job, node, places, planned, reasons
from support.planner.snapshots import configs, snapshots
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import FieldError, Job, Snapshot
from synergy_core.plan import plan

VGG, RESNET = 0.74, 0.05
"""Table 6: the largest tensor's part of VGG16 and of ResNet101."""
FUNGIBLE = ("proportional", "tune", "opt")
FIXED = ("greedy", "drf", "drf-tune")


def _busy(*gpus: int) -> tuple[list[Any], list[Job]]:
    """Nodes of 4 GPUs, of which so many are held by jobs that stay."""
    nodes = [node(f"n{index}", 4, cpus=12, gib=240) for index in range(len(gpus))]
    held = [
        job(
            f"r{index}", held, running=holding(f"r{index}", (f"n{index}", held, 3 * held, 60 * held)), preemptible=False
        )
        for index, held in enumerate(gpus)
        if held
    ]
    return nodes, held


def _place(*jobs: Job, busy: tuple[int, ...], **config: Any) -> tuple[dict[str, dict[str, int]], dict[str, str]]:
    nodes, held = _busy(*busy)
    made = planned(nodes, [*held, *jobs], **{"pack_limit": 0.3, "mechanism": "proportional", **config})
    names = {one.name for one in jobs}
    return {k: v for k, v in places(made).items() if k in names}, reasons(made)


@pytest.mark.parametrize("mechanism", [*FUNGIBLE, *FIXED])
def test_a_skewed_job_takes_one_node_and_another_what_is_left_over(mechanism: str) -> None:
    skewed, flat = job("vgg", 4, skew=VGG), job("resnet", 4, skew=RESNET, arrival_s=1)
    given, _ = _place(skewed, flat, busy=(2, 0, 3, 3), mechanism=mechanism)
    assert given == {"vgg": {"n1": 4}, "resnet": {"n0": 2, "n2": 1, "n3": 1}}


@pytest.mark.parametrize("mechanism", ["proportional", "tune", "greedy"])
def test_a_skewed_job_waits_for_the_fewest_nodes_and_is_told_so(mechanism: str) -> None:
    given, why = _place(job("vgg", 8, skew=VGG), busy=(2, 0, 2), mechanism=mechanism)
    assert (given, why) == ({}, {"vgg": "WouldBeSpread"})
    given, _ = _place(job("resnet", 8, skew=RESNET), busy=(2, 0, 2), mechanism=mechanism)
    assert given == {"resnet": {"n0": 2, "n1": 4, "n2": 2}}
    given, _ = _place(job("vgg", 8, skew=VGG), busy=(2, 0, 0), mechanism=mechanism)
    assert given == {"vgg": {"n1": 4, "n2": 4}}


def test_a_skewed_job_does_not_wait_for_a_node_that_is_cordoned_or_not_for_it() -> None:
    nodes = [node("n0", 4, schedulable=False), node("n1", 2), node("n2", 2)]
    cordoned = planned(nodes, [job("vgg", 4, skew=VGG)], pack_limit=0.3)
    assert places(cordoned) == {"vgg": {"n1": 2, "n2": 2}}
    nodes = [node("n0", 4), node("n1", 2), node("n2", 2)]
    kept_off = planned(nodes, [job("vgg", 4, skew=VGG, nodes=("n1", "n2"))], pack_limit=0.3)
    assert places(kept_off) == {"vgg": {"n1": 2, "n2": 2}}


def test_the_words_name_the_skew_and_what_to_change() -> None:
    nodes, held = _busy(2, 2, 0)
    made = planned(nodes, [*held, job("vgg", 8, skew=VGG)], pack_limit=0.3)
    (entry,) = made.waiting
    assert "its largest tensor is 74% of the model" in entry.message
    assert "placement spread lets it run at once" in entry.message


def test_what_was_measured_beats_the_guess() -> None:
    robust = job("robust", 2, skew=VGG, spread_speed=0.99)
    assert _place(robust, busy=(3, 3))[0] == {"robust": {"n0": 1, "n1": 1}}
    sensitive = job("sensitive", 2, skew=RESNET, spread_speed=0.6)
    given, why = _place(sensitive, busy=(3, 3))
    assert (given, why) == ({}, {"sensitive": "WouldBeSpread"})
    by_type = replace(sensitive, spread_speed=None, spread_speeds={"T4": 1.2, "V100": 0.6})
    assert _place(by_type, busy=(3, 3))[1] == {"sensitive": "WouldBeSpread"}, "the worst type counts"


def test_what_the_job_says_itself_beats_both_and_without_a_limit_nothing_is_guessed() -> None:
    spread = job("spread", 2, skew=VGG, placement="spread")
    assert _place(spread, busy=(3, 3))[0] == {"spread": {"n0": 1, "n1": 1}}
    one = job("one", 2, skew=RESNET, placement="consolidate")
    assert _place(one, busy=(3, 3))[1] == {"one": "NoFreeNode"}
    vgg = job("vgg", 2, skew=VGG)
    assert _place(vgg, busy=(3, 3), pack_limit=None)[0] == {"vgg": {"n0": 1, "n1": 1}}


def test_one_that_never_fits_on_so_few_nodes_as_there_are_gpus_for_is_told_what_never_helps() -> None:
    nodes, _ = _busy(0, 0)
    assert reasons(planned(nodes, [job("vgg", 12, skew=VGG)], pack_limit=0.3)) == {"vgg": "TooManyGPUs"}


@pytest.mark.parametrize("limit", [-0.1, float("nan")])
def test_a_limit_below_nothing_is_refused(limit: float) -> None:
    with pytest.raises(FieldError, match="pack_limit: must be at least 0"):
        planned([node("n")], [], pack_limit=limit)


_NEARLY_FULL = Snapshot(
    nodes=(
        node("n0", 4, schedulable=False),
        node("n1", 2, cpus=6, gib=100, memory_bytes_used=100 * GIB - 2),
    ),
    jobs=(job("j", 2, placement="pack"),),
)
"""A byte of memory for each free GPU is little, and enough."""


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=50)
@given(snapshots(), configs)
@example(_NEARLY_FULL, PlanConfig(policy="allox", mechanism="drf-tune", pack_limit=0.3))
def test_no_newcomer_that_is_to_lie_close_lies_on_more_nodes_than_it_must(
    snapshot: Snapshot, config: PlanConfig
) -> None:
    free = {n.name: max(0, n.gpus - n.gpus_used) for n in snapshot.nodes}
    jobs = {one.name: one for one in snapshot.jobs}
    for allocation in plan(snapshot, config).allocations:
        one = jobs[allocation.job]
        if one.running is not None or one.placement not in ("auto", "pack") or one.purpose == "profile":
            continue
        sensitive = one.spread_speed < 0.95 if one.spread_speed is not None else one.skew > 0.3
        if one.placement == "pack" or (config.pack_limit is not None and sensitive and one.gpus > 1):
            own = {share.node for share in allocation.workers}
            there = [n for n in snapshot.nodes if n.gpu_type == allocation.gpu_type]
            assert all(_is_open(one, n) for n in there if n.name in own)
            usable = sorted((free[n.name] for n in there if n.name in own or _may(one, n)), reverse=True)
            fewest = next(count for count in range(1, len(usable) + 1) if sum(usable[:count]) >= one.gpus)
            assert len(allocation.workers) <= fewest


def _may(one: Job, where: Any) -> bool:
    """Whether any job that the node is open to has enough there: with next to no memory left, some do and some do
    not."""
    enough = where.cpu_millis - where.cpu_millis_used > 0 and where.memory_bytes - where.memory_bytes_used > GIB // 4
    return enough and _is_open(one, where)


def _is_open(one: Job, where: Any) -> bool:
    return bool(where.schedulable and (one.nodes is None or where.name in one.nodes))
