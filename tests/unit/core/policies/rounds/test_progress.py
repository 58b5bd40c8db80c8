"""What a plan takes for the progress of a job, and for the rest of one that has no end."""

from typing import Any

import pytest

from support.planner.planning import GIB, job, node
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Profile, Snapshot
from synergy_core.plan import plan
from synergy_core.policies.rounds.isolation import progress

ROUND_S = 300.0
SPEEDS = {"V100": 10.0, "K80": 1.0}


def _job(name: str, *types: str, **more: Any) -> Job:
    profiles = {
        kind: Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((SPEEDS[kind],),)) for kind in types
    }
    return job(name, profiles=profiles, gpu_types=types, **more)


@pytest.mark.parametrize(
    ("known", "steps"),
    [
        ({"steps_total": 5000}, 0.0),
        ({"steps_total": 5000, "steps_done": 70}, 70.0),
        ({"steps_done": 70}, 70.0),
        ({}, 10.0 * 100.0 + 1.0 * 40.0),
    ],
)
def test_steps_are_counted_if_the_job_tells_any_or_its_length(known: dict[str, int], steps: float) -> None:
    one = _job("j", received_s={"V100": 100.0, "K80": 40.0, "P100": 1e6}, **known)
    assert progress([one], [SPEEDS]).tolist() == [steps]


@pytest.mark.parametrize(("received_s", "first"), [(50.0, "endless"), (2000.0, "known")])
def test_a_job_without_an_end_is_taken_to_have_as_much_ahead_as_behind(received_s: float, first: str) -> None:
    """`known` has 1,000 s to go. Nothing counts as less than a round of 300 s."""
    jobs = [
        _job("endless", "V100", received_s={"V100": received_s}),
        _job("known", "V100", steps_total=10_000),
    ]
    snapshot = Snapshot(nodes=(node("v", 1),), jobs=tuple(jobs), now=ROUND_S, round_s=ROUND_S)
    made = plan(snapshot, PlanConfig(policy="sjf", mechanism="proportional"))
    assert [one.job for one in made.allocations] == [first]


def test_gpus_of_a_run_that_may_not_be_preempted_are_no_part_of_what_is_shared() -> None:
    """In no round `other` is promised the V100, which it could not have."""
    nodes = (node("v", 1), node("k", 1, gpu_type="K80"))
    first = _job("stays", "V100", "K80", preemptible=False, steps_total=10**9)
    config = PlanConfig(policy="max-min-fairness", mechanism="proportional")
    begun = plan(Snapshot(nodes=nodes, jobs=(first,), round_s=ROUND_S), config).allocations[0]
    assert begun.gpu_type == "V100"
    stays = _job("stays", "V100", "K80", preemptible=False, steps_total=10**9, running=begun)
    other = _job("other", "V100", "K80", steps_total=10**9)
    for number in range(20):
        made = plan(Snapshot(nodes=nodes, jobs=(stays, other), now=number * ROUND_S, round_s=ROUND_S), config)
        assert {one.job: one.gpu_type for one in made.allocations} == {"stays": "V100", "other": "K80"}, number


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_equal_jobs_the_one_that_came_long_ago_is_owed_more(order: int) -> None:
    """Both have had as much. When accounts are settled, as in round 16, the one that has lived longer comes first."""
    jobs = [
        _job("old", "V100", received_s={"V100": ROUND_S}, steps_total=10**9, arrival_s=0.0),
        _job("new", "V100", received_s={"V100": ROUND_S}, steps_total=10**9, arrival_s=14 * ROUND_S),
    ]
    snapshot = Snapshot(nodes=(node("v", 1),), jobs=tuple(jobs[::order]), now=16 * ROUND_S, round_s=ROUND_S)
    made = plan(snapshot, PlanConfig(policy="max-min-fairness", mechanism="proportional"))
    assert [one.job for one in made.allocations] == ["old"]


@pytest.mark.parametrize("left", [1.0, 2.0, 3.0])
def test_a_deadline_within_a_few_rounds_asks_for_all_the_time_that_is_needed(left: float) -> None:
    """The job needs 290 s on the V100 and keeps its deadline only there, at once; the K80 is the cheaper one."""
    nodes = (node("v", 1, price_per_hour=3.0), node("k", 1, gpu_type="K80", price_per_hour=0.1))
    urgent = _job("urgent", "V100", "K80", steps_total=2900, deadline_s=left * ROUND_S)
    snapshot = Snapshot(nodes=nodes, jobs=(urgent,), round_s=ROUND_S)
    made = plan(snapshot, PlanConfig(policy="min-cost-slo", mechanism="proportional"))
    assert [one.gpu_type for one in made.allocations] == ["V100"]


@pytest.mark.parametrize("order", [1, -1])
def test_finish_time_fairness_serves_the_job_that_has_waited_since_long_ago(order: int) -> None:
    """Both have as many steps to go. The one that came 100 rounds ago is the later one, whatever is done now."""
    now = 101 * ROUND_S
    jobs = [_job(name, "V100", steps_total=30_000, arrival_s=at) for name, at in (("new", now), ("old", 0.0))]
    snapshot = Snapshot(nodes=(node("v", 1),), jobs=tuple(jobs[::order]), now=now, round_s=ROUND_S)
    made = plan(snapshot, PlanConfig(policy="finish-time-fairness", mechanism="proportional"))
    assert [one.job for one in made.allocations] == ["old"]
