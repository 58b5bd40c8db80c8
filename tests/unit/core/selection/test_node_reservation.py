"""Nodes are kept for a promoted job, so that nobody whom no round displaces holds it off for ever."""

from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.planner.planning import holding, job, node, places, planned, reasons
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig, PriorityQueues
from synergy_core.model.snapshot import Job, Node, Placement, Snapshot
from synergy_core.plan import plan

ROUND_S, THRESHOLD_GPU_S, LONGEST_S = 100.0, 400.0, 250.0


def _held_off(**more: Any) -> tuple[list[Node], list[Job]]:
    """Two nodes; `wide` has waited too long for one of them, and a run that does not let go is on each."""
    nodes = [node("n1", 4), node("n2", 4)]
    runs = [
        job(name, 1, running=holding(name, (where, 1, 3, 60)), started_s=0.0, run_started_s=since, **more)
        for name, where, since in (("older", "n2", 10.0), ("younger", "n1", 20.0))
    ]
    wide = job("wide", 4, placement="consolidate", arrival_s=-5.0, waiting_s=500.0)
    return nodes, [*runs, wide]


def _config(**more: Any) -> dict[str, Any]:
    queues = PriorityQueues(thresholds_gpu_s=(THRESHOLD_GPU_S,), promote_knob=1.0)
    return {"policy": "2d-las", "mechanism": "proportional", "queues": queues, **more}


@pytest.mark.parametrize("mode", ["round", "fill"])
@pytest.mark.parametrize("mechanism", ["proportional", "tune", "opt"])
def test_the_node_of_the_oldest_is_kept_from_those_who_stay_to_their_end(mechanism: str, mode: str) -> None:
    nodes, jobs = _held_off(preemptible=False)
    newcomers = [job("stays", 3, arrival_s=1.0, preemptible=False), job("leaves", 3, arrival_s=2.0)]
    made = planned(nodes, [*jobs, *newcomers], **_config(mechanism=mechanism, mode=mode))
    assert made.promoted == ("wide",)
    assert (places(made)["stays"], places(made)["leaves"]) == ({"n1": 3}, {"n2": 3})


def test_who_is_kept_off_is_told_why() -> None:
    nodes, jobs = _held_off(preemptible=False)
    crowd = [job("fills", 3, arrival_s=1.0, preemptible=False), job("stays", 1, arrival_s=2.0, preemptible=False)]
    made = planned(nodes, [*jobs, *crowd], **_config())
    assert reasons(made) == {"wide": "NoFreeNode", "stays": "KeptForAPromotedJob"}
    assert "kept for a job that has waited too long" in next(one.message for one in made.waiting if one.job == "stays")


def test_young_runs_are_waited_for_and_no_others_begin_there() -> None:
    nodes, jobs = _held_off()
    new = [job("new", 2, arrival_s=1.0), job("newer", 2, arrival_s=2.0)]
    config = _config(minimum_run_s=90.0)
    made = plan(Snapshot(nodes=tuple(nodes), jobs=(*jobs, *new), now=50.0), PlanConfig(**config))
    assert places(made)["new"] == {"n1": 2}
    assert reasons(made) == {"wide": "NoFreeNode", "newer": "KeptForAPromotedJob"}
    later = plan(Snapshot(nodes=tuple(nodes), jobs=(*jobs, *new), now=100.0), PlanConfig(**config))
    assert places(later)["wide"] == {"n2": 4}, "the older run is old enough"


def test_the_node_is_kept_whose_run_lets_go_first_not_the_one_whose_run_is_oldest() -> None:
    """A run is safe for ten times its preemption cost: `dear` from 10 to 100 s, `cheap` from 20 to 40 s."""
    runs = [
        job(name, 1, running=holding(name, (where, 1, 3, 60)), run_started_s=since, preemption_cost_s=cost)
        for name, where, since, cost in (("dear", "n1", 10.0, 9.0), ("cheap", "n2", 20.0, 2.0))
    ]
    wide = job("wide", 4, placement="consolidate", arrival_s=-5.0, waiting_s=500.0)
    new = [job(name, 3, arrival_s=at, preemption_cost_s=5.0) for name, at in (("new", 21.0), ("newer", 22.0))]
    snapshot = Snapshot(nodes=(node("n1", 4), node("n2", 4)), jobs=(*runs, wide, *new), now=30.0)
    made = plan(snapshot, PlanConfig(**_config(preemption_payback=10.0)))
    assert places(made)["new"] == {"n1": 3}
    assert reasons(made) == {"wide": "NoFreeNode", "newer": "KeptForAPromotedJob"}


def test_of_two_promoted_jobs_the_second_has_a_node_of_another_type_reserved() -> None:
    """The K80s are reserved for the first, which may use no others. The second may use both types."""
    nodes = [node("v", 4), node("k", 4, gpu_type="K80")]
    runs = [
        job(name, running=holding(name, (name[0], 1, 3, 60), gpu_type=gpu_type), preemptible=False, started_s=0.0)
        for name, gpu_type in (("v-runs", "V100"), ("k-runs", "K80"))
    ]
    wide = [
        job(name, 4, placement="consolidate", gpu_types=types, arrival_s=at, waiting_s=500.0)
        for name, types, at in (("first", ("K80",), -6.0), ("second", ("K80", "V100"), -5.0))
    ]
    stays = job("stays", gpu_types=("V100",), preemptible=False)
    made = planned(nodes, [*runs, *wide, stays], **_config())
    assert made.promoted == ("first", "second")
    assert reasons(made)["stays"] == "KeptForAPromotedJob"


def test_where_a_run_goes_on_to_its_own_end_young_ones_may_begin_meanwhile() -> None:
    nodes, jobs = _held_off(preemptible=False)
    new = [job("new", 3, arrival_s=1.0), job("newer", 3, arrival_s=1.0)]
    made = planned(nodes, [*jobs, *new], **_config(minimum_run_s=90.0))
    assert set(places(made)) >= {"new", "newer"}


def test_a_profile_run_does_not_go_ahead_of_a_promoted_job() -> None:
    nodes = [node("n1", 4)]
    wide = job("wide", 4, arrival_s=-5.0, waiting_s=500.0)
    made = planned(nodes, [wide, job("probe", 1, purpose="profile")], **_config())
    assert set(places(made)) == {"wide"}


def test_nothing_is_kept_for_a_job_that_would_never_fit() -> None:
    nodes, jobs = _held_off(preemptible=False)
    jobs[-1] = replace(jobs[-1], gpus=5)
    stays = job("stays", 3, arrival_s=1.0, preemptible=False)
    made = planned(nodes, [*jobs, stays, replace(stays, name="too")], **_config())
    assert {"stays", "too"} <= set(places(made))


@dataclass
class _Live:
    """A job as it goes on; `left_s` are the seconds that it still has to run."""

    job: Job
    left_s: float
    comes_s: float
    ends_s: float = field(default=inf)

    def advance(self, since: float, now: float) -> None:
        passed, one = now - since, self.job
        if one.running is None:
            self.job = replace(one, waiting_s=one.waiting_s + passed)
        else:
            self.left_s -= passed
            self.job = replace(one, attained_gpu_s=one.attained_gpu_s + passed * one.gpus)

    def carry_out(self, made: Plan, now: float) -> None:
        held = {one.job: one for one in made.allocations}.get(self.job.name)
        one = self.job
        begins = held is not None and (one.running is None or one.name in made.preempted)
        if begins:
            one = replace(one, run_started_s=now, started_s=now if one.started_s is None else one.started_s)
        if one.name in made.promoted:
            one = replace(one, promoted_gpu_s=one.attained_gpu_s, promoted_waiting_s=one.waiting_s)
        self.job = replace(one, running=held)
        self.ends_s = now + self.left_s if held is not None else inf


def _start_of(wide: _Live, others: list[_Live], nodes: tuple[Node, ...], config: PlanConfig, until: float) -> float:
    """When the wide job first runs: rounds, and in between what falls free is filled."""
    coming, here, now = sorted([wide, *others], key=lambda one: one.comes_s), list[_Live](), 0.0
    while now <= until:
        here += [one for one in coming if one.comes_s <= now]
        coming = coming[len([one for one in coming if one.comes_s <= now]) :]
        here = [one for one in here if one.left_s > 1e-6]
        mode: Any = "round" if now % ROUND_S == 0 else "fill"
        snapshot = Snapshot(nodes=nodes, jobs=tuple(one.job for one in here), now=now, round_s=ROUND_S)
        made = plan(snapshot, replace(config, mode=mode))
        for one in here:
            one.carry_out(made, now)
        if wide.job.running is not None:
            return now
        moments = [(now // ROUND_S + 1) * ROUND_S, *(one.ends_s for one in here), *(one.comes_s for one in coming[:1])]
        upcoming = min(moments)
        for one in here:
            one.advance(now, upcoming)
        now = upcoming
    return inf


def _streams() -> st.SearchStrategy[list[tuple[int, float, float, bool, bool]]]:
    """(GPUs, seconds until the next comes, length, whether it may be preempted, whether it is a profile run)."""
    return st.lists(
        st.tuples(
            st.sampled_from((1, 1, 2, 4)),
            st.sampled_from((0.0, 5.0, 20.0, 60.0)),
            st.sampled_from((30.0, 170.0, LONGEST_S)),
            st.sampled_from((True, True, False)),
            st.sampled_from((False, False, False, False, True)),
        ),
        min_size=4,
        max_size=12,
    )


@settings(max_examples=40)
@given(
    sizes=st.lists(st.sampled_from((2, 4, 8)), min_size=1, max_size=3),
    part=st.sampled_from((0.5, 1.0)),
    placement=st.sampled_from(("auto", "consolidate", "pack", "spread")),
    stream=_streams(),
    least=st.sampled_from((0.0, 60.0, 250.0)),
    payback=st.sampled_from((0.0, 2.0)),
    policy=st.sampled_from(("2d-las", "2d-gittins")),
    mechanism=st.sampled_from(("proportional", "tune")),
)
def test_the_bound_on_a_wide_job_s_wait(
    *,
    sizes: list[int],
    part: float,
    placement: Placement,
    stream: list[tuple[int, float, float, bool, bool]],
    least: float,
    payback: float,
    policy: str,
    mechanism: str,
) -> None:
    """Others keep coming, most of whom no round could displace at once. None of them came before the wide job."""
    nodes = tuple(node(f"n{index}", size) for index, size in enumerate(sizes))
    whole = max(sizes) if placement == "consolidate" else sum(sizes)
    gpus = max(1, int(part * whole))
    wide = _Live(job("wide", gpus, arrival_s=-1.0, placement=placement), LONGEST_S, comes_s=1.0)
    queues = PriorityQueues(thresholds_gpu_s=(THRESHOLD_GPU_S,), promote_knob=1.0, service_gpu_s=(30.0, 500.0))
    config = PlanConfig(
        policy=policy, mechanism=mechanism, queues=queues, minimum_run_s=least, preemption_payback=payback
    )
    pause_s = 40.0
    promoted_by = wide.comes_s + THRESHOLD_GPU_S / gpus + ROUND_S
    bound = promoted_by + LONGEST_S + max(least, payback * pause_s) + ROUND_S
    others, comes = [], 0.0
    while comes <= bound:
        for size, gap, length, preemptible, probe in stream:
            one = job(
                f"s{len(others):03}",
                min(size, max(sizes)),
                arrival_s=comes,
                preemptible=preemptible,
                preemption_cost_s=pause_s,
                purpose="profile" if probe else "train",
            )
            others.append(_Live(one, length, comes))
            comes += gap
        comes += 5.0
    assert _start_of(wide, others, nodes, config, bound) <= bound
