"""Allocations that a plan grants, keeps and changes."""

import pytest

from support.extender.cluster import (
    GI,
    NOW,
    allocation,
    cluster,
    job,
    key,
    node_object,
    share,
    worker,
)
from support.extender.deciding import (
    AT_PLAN,
    BOUNDARY,
    MID_ROUND,
    NODES,
    ROUNDS,
    THIS,
    allocated,
    decided,
    only,
    place,
    plan,
)
from synergy_api.timestamps import format_time
from synergy_core.model import snapshot as core
from synergy_extender.cluster.revocation import Revocation
from synergy_extender.decisions.changes import ChangeKind
from synergy_extender.rounds import Moment


def test_a_waiting_job_that_the_plan_chose_is_granted_and_at_once_admitted_where_the_room_is_free() -> None:
    state = cluster(NODES, [job("j", status={"service": {"run": 2, "endedRun": 2}})])
    change = only(decided(state, AT_PLAN, plan(place("j", ("n1", 1, 3000)))))
    assert change.kind is ChangeKind.ENTER
    assert change.queue is None
    granted = allocated(change)
    assert (granted.run, granted.purpose, granted.state, granted.admitted) == (3, "Train", "Granted", True)
    assert (granted.round, granted.lease_until) == (THIS + 1, format_time(BOUNDARY + 20))
    assert (granted.gpu_type, granted.steps_per_second, granted.proportional_steps_per_second) == ("V100", 2.0, 1.0)
    assert [(s.node, s.gpus, s.cpu_millis, s.memory_bytes) for s in granted.workers] == [("n1", 1, 3000, GI)]


def test_a_grant_on_room_that_others_still_hold_waits_for_admission() -> None:
    old = job("old", status={"allocation": allocation(share("n1", gpus=8))}, gpus=8)
    state = cluster(NODES[:1], [old, job("new")], [worker("old", node="n1", gpus=8)])
    leave, enter = decided(state, AT_PLAN, plan(place("new", ("n1", 1, 1000)), waiting=("old",))).changes
    assert (leave.kind, leave.job.key.name, allocated(leave).state) == (ChangeKind.LEAVE, "old", "Revoked")
    assert allocated(leave).lease_until == format_time(BOUNDARY)
    assert allocated(leave).reason == Revocation.YIELDS
    assert (enter.kind, allocated(enter).admitted) == (ChangeKind.ENTER, False)


def test_of_a_job_that_stays_as_it_is_nothing_is_written() -> None:
    held = allocation(share("n1", cpu_millis=3000), stepsPerSecond=2.0, proportionalStepsPerSecond=1.0)
    state = cluster(NODES, [job("j", status={"allocation": held})])
    assert decided(state, AT_PLAN, plan(place("j", ("n1", 1, 3000)))).changes == []


def test_of_a_job_that_stays_with_another_expected_speed_that_is_written() -> None:
    state = cluster(NODES, [job("j", status={"allocation": allocation(share("n1", cpu_millis=3000))})])
    change = only(decided(state, AT_PLAN, plan(place("j", ("n1", 1, 3000), speed=0.0))))
    before = state.jobs[key("j")].status.allocation
    assert before is not None
    assert change.kind is ChangeKind.STAY
    assert allocated(change) == before.model_copy(update={"proportional_steps_per_second": 1.0})


def test_less_cpu_counts_at_once_and_more_when_the_room_is_there() -> None:
    jobs = [
        job("small", status={"allocation": allocation(share("n1", cpu_millis=2000))}),
        job("large", status={"allocation": allocation(share("n1", cpu_millis=10_000))}),
    ]
    pods = [worker("small", node="n1", gpus=1, cpu="2"), worker("large", node="n1", gpus=1, cpu="10")]
    state = cluster([node_object("n1", cpu=12)], jobs, pods)
    made = plan(place("small", ("n1", 1, 9000)), place("large", ("n1", 1, 3000)))
    changes = {c.job.key.name: allocated(c) for c in decided(state, AT_PLAN, made).changes}
    assert changes["large"].workers[0].cpu_millis == 3000
    assert changes["large"].planned == []
    assert changes["small"].workers[0].cpu_millis == 2000
    assert changes["small"].planned[0].cpu_millis == 9000


def test_growth_with_room_to_spare_is_in_force_at_once() -> None:
    state = cluster(
        NODES,
        [job("j", status={"allocation": allocation(share("n1", cpu_millis=2000))})],
        [worker("j", node="n1", gpus=1, cpu="2")],
    )
    change = only(decided(state, AT_PLAN, plan(place("j", ("n1", 1, 9000)))))
    assert allocated(change).workers[0].cpu_millis == 9000
    assert allocated(change).planned == []


def test_a_job_that_moves_leaves_first_and_its_new_place_is_kept() -> None:
    held = {"allocation": allocation(share("n1"))}
    state = cluster(NODES, [job("j", status=held)])
    there = place("j", ("n2", 1, 1000))
    decision = decided(state, AT_PLAN, plan(there))
    assert allocated(only(decision)).state == "Revoked"
    assert allocated(only(decision)).reason == Revocation.MOVES
    assert decision.reserved == {key("j"): there}
    left = cluster(NODES, [job("j", status={"allocation": allocation(state="Revoked"), "service": {"endedRun": 1}})])
    back = decided(left, MID_ROUND, plan(there), "fill", reserved=decision.reserved)
    assert (allocated(only(back)).state, allocated(only(back)).run) == ("Granted", 2)
    assert back.reserved == {}


def test_a_place_kept_on_a_node_that_takes_no_pods_any_more_is_given_up() -> None:
    state = cluster([node_object("n2", unschedulable=True)], [job("j")])
    there = place("j", ("n2", 1, 1000))
    decision = decided(state, MID_ROUND, plan(there), "fill", reserved={key("j"): there})
    assert (decision.changes, decision.reserved) == ([], {})


@pytest.mark.parametrize("places", [(), (place("j", ("n2", 1, 1000)),)])
def test_in_fill_mode_nobody_who_runs_leaves(places: tuple[core.Allocation, ...]) -> None:
    state = cluster(NODES, [job("j", status={"allocation": allocation(share("n1"))})])
    decision = decided(state, MID_ROUND, plan(*places), "fill")
    assert (decision.changes, decision.reserved) == ([], {})


def test_in_fill_mode_who_holds_more_than_its_share_is_cut_down_for_a_newcomer() -> None:
    node = node_object("n1", gpus=2, cpu=8, memory_gib=8)
    held = allocation(share("n1", cpu_millis=8000))
    state = cluster([node], [job("j", status={"allocation": held}), job("new")], [worker(node="n1", gpus=1, cpu="8")])
    made = plan(place("j", ("n1", 1, 4000)), place("new", ("n1", 1, 4000)))
    stay, enter = decided(state, MID_ROUND, made, "fill").changes
    assert (stay.kind, allocated(stay).state) == (ChangeKind.STAY, "Granted")
    assert [s.cpu_millis for s in allocated(stay).workers] == [4000]
    assert allocated(stay).lease_until == held["leaseUntil"]
    assert (enter.kind, allocated(enter).admitted) == (ChangeKind.ENTER, False)
    shrunk = job("j", status={"allocation": allocation(share("n1", cpu_millis=4000))})
    entering = job("new", status={"allocation": allocation(share("n1", cpu_millis=4000), admitted=False)})
    later = cluster([node], [shrunk, entering], [worker(node="n1", gpus=1, cpu="4")])
    assert allocated(only(decided(later, MID_ROUND))).admitted


def test_a_new_leader_writes_nothing_of_a_run_that_holds_its_place_for_long() -> None:
    late = allocation(share("n1"), until=NOW - 40, round=THIS - 3)
    assert decided(cluster(NODES, [job("j", status={"allocation": late})]), MID_ROUND).changes == []


def test_a_plan_that_comes_after_the_boundary_leaves_time_to_hear_of_it() -> None:
    late = Moment(BOUNDARY + 3, ROUNDS, THIS + 1)
    state = cluster(NODES, [job("j", status={"allocation": allocation(share("n1"))})])
    change = only(decided(state, late, plan(waiting=("j",))))
    assert allocated(change).lease_until == format_time(BOUNDARY + 4)


def test_a_plan_without_cpu_is_never_written() -> None:
    held = {"allocation": allocation(share("n1", cpu_millis=500), until=BOUNDARY + 20)}
    state = cluster(NODES, [job("new"), job("old", status=held)])
    empty = plan(place("new", ("n1", 1, 0)), place("old", ("n1", 1, 0)))
    assert decided(state, AT_PLAN, empty).changes == []


def test_a_profile_series_is_granted_for_that_purpose_and_keeps_its_numbers() -> None:
    request = {"gpuType": "V100", "gpus": 1, "cpuMillis": 4000, "memoryBytes": GI}
    profiling = {"phase": "Profiling", "profile": {"state": "Waiting", "request": request}}
    asks = cluster(NODES, [job("p", status=profiling)])
    assert allocated(only(decided(asks, MID_ROUND, plan(place("p", ("n1", 1, 4000))), "fill"))).purpose == "Profile"
    holds = allocation(share("n1", cpu_millis=4000), purpose="Profile")
    held = cluster(NODES, [job("p", status={**profiling, "allocation": holds})])
    assert decided(held, AT_PLAN, plan(place("p", ("n1", 1, 2000)))).changes == []
