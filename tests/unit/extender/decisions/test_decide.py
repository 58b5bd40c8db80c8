"""From a plan to changes of status."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from support.extender.cluster import (
    GI,
    NOW,
    allocation,
    cluster,
    foreign,
    job,
    key,
    node_object,
    pod_object,
    share,
    worker,
)
from synergy_api.parts.allocation import Allocation
from synergy_api.reasons import Reason, say
from synergy_api.timestamps import format_time, parse_time
from synergy_core.model import snapshot as core
from synergy_core.model.answer import Estimate, Late, Plan, Waiting
from synergy_core.model.config import Mode
from synergy_extender.cluster.ledger import AssumedBindings
from synergy_extender.cluster.revocation import Revocation
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import Key, read_pod
from synergy_extender.decisions.changes import ChangeKind, StatusChange
from synergy_extender.decisions.decide import Decision, decide
from synergy_extender.decisions.plan_result import PlanResult, stance
from synergy_extender.decisions.protocol import NOT_ADMITTED_SECONDS
from synergy_extender.decisions.unstarted import NOT_STARTED_SECONDS
from synergy_extender.decisions.writing_order import POSITIONS_AT_ONCE, REASONS_AT_ONCE, affordable, in_turns
from synergy_extender.planning.writer import body_of
from synergy_extender.rounds import Moment, Rounds
from synergy_extender.snapshot.snapshot import build_snapshot

ROUNDS = Rounds(20)
THIS = ROUNDS.at(NOW)
BOUNDARY = ROUNDS.end(THIS)
AT_PLAN = Moment(BOUNDARY - 1.9, ROUNDS, THIS + 1)
"""Shortly after the plan of the next round was begun."""
MID_ROUND = Moment(NOW + 5, ROUNDS, THIS)
NODES = (node_object("n1"), node_object("n2"))


def place(name: str, *workers: tuple[str, int, int], speed: float = 2.0) -> core.Allocation:
    """(node, GPUs, milli-CPU) for each node."""
    return core.Allocation(
        job=f"team/{name}",
        gpu_type="V100",
        workers=tuple(core.NodeShare(node=n, gpus=g, cpu_millis=c, memory_bytes=GI) for n, g, c in workers),
        steps_per_s=speed,
        proportional_steps_per_s=1.0,
    )


def plan(*places: core.Allocation, waiting: tuple[str, ...] = ()) -> Plan:
    told = tuple(Waiting(job=f"team/{name}", reason="NoFreeGPU", message="waits") for name in waiting)
    return Plan(allocations=places, waiting=told, preempted=(), resized=(), policy="las", mechanism="tune")


def decided(
    state: ClusterState, moment: Moment, made: Plan | None = None, mode: Mode = "round", **more: Any
) -> Decision:
    result = None
    if made is not None:
        stances = {k: stance(j, moment.now) for k, j in state.jobs.items()}
        result = PlanResult(made, mode, stances, more.pop("refused", {}))
    return decide(state, moment, result, AssumedBindings(), **more)


def only(decision: Decision) -> StatusChange:
    assert len(decision.changes) == 1, decision.changes
    return decision.changes[0]


def allocated(change: StatusChange) -> Allocation:
    assert change.allocation is not None
    return change.allocation


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


def test_a_job_that_stays_gets_a_longer_lease_and_nothing_else() -> None:
    state = cluster(NODES, [job("j", status={"allocation": allocation(share("n1", cpu_millis=3000))})])
    change = only(decided(state, AT_PLAN, plan(place("j", ("n1", 1, 3000), speed=0.0))))
    before = state.jobs[key("j")].status.allocation
    assert before is not None
    assert change.kind is ChangeKind.STAY
    assert allocated(change) == before.model_copy(
        update={
            "round": THIS + 1,
            "lease_until": format_time(BOUNDARY + 20),
            "proportional_steps_per_second": 1.0,
        }
    )


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


def test_a_lease_that_was_not_renewed_for_want_of_a_leader_is_renewed_first() -> None:
    late = allocation(share("n1"), until=NOW - 40, round=THIS - 3)
    change = only(decided(cluster(NODES, [job("j", status={"allocation": late})]), MID_ROUND))
    assert change.kind is ChangeKind.STAY
    assert (allocated(change).round, allocated(change).lease_until) == (THIS, format_time(BOUNDARY))


def test_a_plan_that_comes_after_the_boundary_leaves_time_to_hear_of_it() -> None:
    late = Moment(BOUNDARY + 3, ROUNDS, THIS + 1)
    state = cluster(NODES, [job("j", status={"allocation": allocation(share("n1"))})])
    change = only(decided(state, late, plan(waiting=("j",))))
    assert allocated(change).lease_until == format_time(BOUNDARY + 4)


def test_an_ended_run_is_released_and_planned_again_in_the_same_pass() -> None:
    status = {"allocation": allocation(share("n1"), state="Revoked"), "service": {"run": 1, "endedRun": 1}}
    done = {"allocation": allocation(share("n1")), "service": {"run": 1, "endedRun": 1}, "phase": "Succeeded"}
    state = cluster(NODES, [job("again", status=status), job("done", status=done)])
    changes = {
        c.job.key.name: c for c in decided(state, MID_ROUND, plan(place("again", ("n1", 1, 1000))), "fill").changes
    }
    assert (changes["again"].kind, allocated(changes["again"]).run) == (ChangeKind.ENTER, 2)
    released = allocated(changes["done"])
    assert (released.state, released.workers, released.lease_until, released.run) == ("Released", [], None, 1)


@pytest.mark.parametrize("mode", ["round", "fill", None])
def test_a_suspended_job_leaves_at_once_in_every_kind_of_pass(mode: Mode | None) -> None:
    held = {"allocation": allocation(share("n1")), "phase": "Running"}
    state = cluster(NODES, [job("j", status=held, spec={"suspend": True})])
    made = None if mode is None else plan(place("j", ("n1", 1, 1000)))
    change = only(decided(state, MID_ROUND, made, mode or "fill"))
    assert (allocated(change).state, allocated(change).reason) == ("Revoked", Revocation.SUSPENDED)
    assert allocated(change).lease_until == format_time(MID_ROUND.now)


def test_a_run_that_is_not_admitted_gives_back_a_place_on_a_lost_node() -> None:
    held = {"allocation": allocation(share("n1"), admitted=False)}
    state = cluster([node_object("n1", ready=False)], [job("j", status=held)])
    assert allocated(only(decided(state, MID_ROUND))).reason == Revocation.NODE_UNUSABLE
    running = cluster([node_object("n1", ready=False)], [job("j", status={"allocation": allocation(share("n1"))})])
    assert decided(running, MID_ROUND).changes == []


def test_a_run_whose_room_never_comes_free_gives_its_place_back() -> None:
    held = {"allocation": allocation(share("n1", gpus=8), admitted=False)}
    state = cluster(NODES, [job("j", gpus=8, status=held)], [foreign("x", node="n1", gpus=1)])
    patience = NOT_ADMITTED_SECONDS
    assert decided(state, MID_ROUND, granted_since={key("j"): MID_ROUND.now - patience}).changes == []
    tired = decided(state, MID_ROUND, granted_since={key("j"): MID_ROUND.now - patience - 1})
    assert allocated(only(tired)).reason == Revocation.ROOM_NOT_FREED


def test_a_grace_period_of_years_is_not_waited_for() -> None:
    """A granted job would stand still, with GPUs beside those that do not come free, until somebody looks."""
    held = {"allocation": allocation(share("n1", gpus=8), admitted=False)}
    going = read_pod(pod_object("x", node="n1", gpus=1, deleting_at=MID_ROUND.now + 1e8))
    state = cluster(NODES, [job("j", gpus=8, status=held)], [going])
    long_ago = {key("j"): MID_ROUND.now - NOT_ADMITTED_SECONDS - 1}
    assert allocated(only(decided(state, MID_ROUND, granted_since=long_ago))).reason == Revocation.ROOM_NOT_FREED


def test_a_deleted_job_that_a_finalizer_keeps_loses_its_place() -> None:
    """Its lease was renewed for ever, and each round gave its GPUs to others in vain."""
    old = job("old", gpus=8, status={"allocation": allocation(share("n1", gpus=8))})
    state = cluster(NODES[:1], [replace(old, deleting=True)], [worker("old", node="n1", gpus=8)])
    for moment in (MID_ROUND, AT_PLAN):
        change = only(decided(state, moment))
        assert (change.kind, allocated(change).state, allocated(change).reason) == (
            ChangeKind.LEAVE,
            "Revoked",
            Revocation.DELETED,
        )
        assert allocated(change).lease_until == format_time(moment.now)


def test_a_long_grace_period_of_those_who_leave_is_waited_for() -> None:
    held = {"allocation": allocation(share("n1", gpus=8), admitted=False)}
    patience = NOT_ADMITTED_SECONDS
    going = read_pod(pod_object("x", node="n1", gpus=1, deleting_at=MID_ROUND.now + 600))
    state = cluster(NODES, [job("j", gpus=8, status=held)], [going])
    long_ago = {key("j"): MID_ROUND.now - patience - 1}
    assert decided(state, MID_ROUND, granted_since=long_ago).changes == []
    overdue = Moment(MID_ROUND.now + 600 + patience + 1, ROUNDS, THIS)
    reasons = [allocated(change).reason for change in decided(state, overdue, granted_since=long_ago).changes]
    assert reasons == [Revocation.ROOM_NOT_FREED]


@pytest.mark.parametrize(("save_seconds", "waits"), [(None, 30.0), (10.0, 30.0), (150.0, 270.0), (9000.0, 570.0)])
def test_a_checkpoint_of_those_who_leave_is_waited_for(save_seconds: float | None, waits: float) -> None:
    """Else a newcomer would give its place back and be planned elsewhere again and again."""
    until = MID_ROUND.now - 1
    leaving = {"allocation": allocation(share("n1"), state="Revoked", until=until)}
    leaving |= {"progress": {"run": 1, "saveSeconds": save_seconds}}
    coming = {"allocation": allocation(share("n1", gpus=8), admitted=False)}
    jobs = [job("old", status=leaving), job("new", gpus=8, status=coming)]
    state = cluster(NODES, jobs, [worker("old", node="n1")])
    long_ago = {key("new"): MID_ROUND.now - 10_000}
    last = until + waits + NOT_ADMITTED_SECONDS
    for now, want in ((last - 1, []), (last + 1, [Revocation.ROOM_NOT_FREED])):
        made = decided(state, Moment(now, ROUNDS, ROUNDS.at(now)), granted_since=long_ago)
        told = [allocated(change).reason for change in made.changes if change.job.key == key("new")]
        assert [reason for reason in told if reason] == want


def test_an_admitted_run_without_a_bound_pod_is_revoked_and_says_why() -> None:
    held = {"allocation": allocation(share("n1"), admitted=True, until=BOUNDARY + 20)}
    state = cluster(NODES, [job("j", status=held)])
    since = {key("j"): MID_ROUND.now - NOT_STARTED_SECONDS}
    assert decided(state, MID_ROUND, unstarted_since=since).changes == []
    assert decided(state, MID_ROUND).changes == []
    late = {key("j"): since[key("j")] - 1}
    revoked = allocated(only(decided(state, MID_ROUND, unstarted_since=late)))
    assert (revoked.state, revoked.lease_until) == ("Revoked", format_time(MID_ROUND.now))
    assert revoked.reason.startswith("PodsNotStarted: run 1 was given back: none of its pods was bound")


def test_the_gpus_of_a_run_that_was_revoked_for_want_of_pods_go_to_others() -> None:
    held = {"allocation": allocation(share("n1", gpus=8), state="Revoked", until=MID_ROUND.now - 1)}
    state = cluster(NODES, [job("stuck", gpus=8, status=held), job("other", gpus=8)])
    change = only(decided(state, MID_ROUND, plan(place("other", ("n1", 8, 1000))), "fill"))
    assert (change.job.key, allocated(change).admitted) == (key("other"), True)


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
    renewed = allocated(only(decided(held, AT_PLAN, plan(place("p", ("n1", 1, 2000))))))
    assert renewed.workers[0].cpu_millis == 4000


def test_a_job_that_changed_while_the_plan_was_made_is_left_to_the_next_pass() -> None:
    state = cluster(NODES, [job("j", spec={"suspend": True}), job("k")])
    before = {k: stance(j, AT_PLAN.now) for k, j in cluster(NODES, [job("j"), job("k")]).jobs.items()}
    result = PlanResult(plan(place("j", ("n1", 1, 1000)), place("k", ("n1", 1, 1000))), "round", before)
    changes = decide(state, AT_PLAN, result, AssumedBindings()).changes
    assert [c.job.key.name for c in changes] == ["k"]


def queue(decision: Decision) -> Mapping[str, tuple[int, str] | None]:
    return {
        c.job.key.name: (c.queue.position, c.queue.reason) if c.queue is not None else None for c in decision.changes
    }


def test_each_waiting_job_hears_its_place_in_line_and_why() -> None:
    jobs = [
        job("a"),
        job("b"),
        job("retries", status={"service": {"failures": 1, "retryAt": format_time(AT_PLAN.now + 30)}}),
        job("bad"),
        job("off", spec={"suspend": True}),
    ]
    problem = "cpu_millis_min: 4000 is above cpu_millis_max 1000; lower it"
    refused = {key("bad"): say(Reason.CANNOT_BE_PLANNED, problem=problem)}
    decision = decided(cluster(NODES, jobs), AT_PLAN, plan(waiting=("b", "a")), refused=refused)
    assert queue(decision) == {
        "b": (1, "NoFreeGPU"),
        "a": (2, "NoFreeGPU"),
        "retries": (3, "BackingOff"),
        "bad": (4, "CannotBePlanned"),
    }
    messages = {c.job.key.name: c.queue.message for c in decision.changes if c.queue is not None}
    assert format_time(AT_PLAN.now + 30) in messages["retries"]
    assert "failure 1 of 3" in messages["retries"]
    assert "cpu_millis_min" in messages["bad"]


def test_what_was_said_already_is_not_written_again_and_a_mere_move_up_may_be_late() -> None:
    told = {"queue": {"position": 1, "reason": "NoFreeGPU", "message": "waits"}}
    same = cluster(NODES, [job("a", status=told)])
    assert decided(same, AT_PLAN, plan(waiting=("a",))).changes == []
    second = {"queue": {"position": 2, "reason": "NoFreeGPU", "message": "waits"}}
    assert (
        only(decided(cluster(NODES, [job("a", status=second)]), AT_PLAN, plan(waiting=("a",)))).kind
        is ChangeKind.POSITION
    )
    other = {"queue": {"position": 1, "reason": "NoFreeNode", "message": "waits"}}
    assert (
        only(decided(cluster(NODES, [job("a", status=other)]), AT_PLAN, plan(waiting=("a",)))).kind is ChangeKind.QUEUE
    )


def test_who_no_longer_waits_is_told_nothing_more() -> None:
    told = {"queue": {"position": 1, "reason": "NoFreeGPU"}}
    state = cluster(NODES, [job("a", status={**told, "allocation": allocation(share("n1"))})])
    assert queue(decided(state, MID_ROUND)) == {"a": None}
    off = cluster(NODES, [job("a", status=told, spec={"suspend": True})])
    assert queue(decided(off, MID_ROUND)) == {"a": None}
    waits = cluster(NODES, [job("a", status=told)])
    assert decided(waits, MID_ROUND).changes == []


def test_who_leaves_is_written_before_who_stays_and_who_enters_last() -> None:
    jobs = [
        job("a-enters"),
        job("b-stays", status={"allocation": allocation(share("n1"))}),
        job("c-leaves", status={"allocation": allocation(share("n2"))}),
        job("d-waits"),
    ]
    made = plan(place("a-enters", ("n1", 1, 1000)), place("b-stays", ("n1", 1, 500)), waiting=("c-leaves", "d-waits"))
    kinds = [c.kind for c in decided(cluster(NODES, jobs), AT_PLAN, made).changes]
    assert kinds == [ChangeKind.LEAVE, ChangeKind.STAY, ChangeKind.ENTER, ChangeKind.QUEUE]


def test_a_decision_that_was_written_leaves_nothing_more_to_decide() -> None:
    state = cluster(NODES, [job("a"), job("b", status={"allocation": allocation(share("n2", cpu_millis=500))})])
    made = plan(place("a", ("n1", 1, 3000)), place("b", ("n2", 1, 700)))
    written = {}
    for change in decided(state, AT_PLAN, made).changes:
        status = {"phase": "Queued", "allocation": allocated(change).to_wire()}
        written[change.job.key.name] = status
    after = cluster(NODES, [job(name, status=status) for name, status in written.items()])
    assert decided(after, AT_PLAN, made).changes == []


def late(name: str, reason: str = "DeadlinesCollide") -> Plan:
    told = Late(job=f"team/{name}", reason=reason, message="in words")
    return Plan(allocations=(), waiting=(), preempted=(), resized=(), policy="las", mechanism="tune", late=(told,))


DUE = {"slo": {"deadline": "2030-01-01T00:00:00Z"}}


def test_who_will_be_late_is_told_once_and_no_longer_than_the_plan_says_so() -> None:
    change = only(decided(cluster(NODES, [job("j", spec=DUE)]), MID_ROUND, late("j"), "fill"))
    assert change.late is not None
    assert (change.kind, change.late.reason, change.late.message) == (ChangeKind.QUEUE, "DeadlinesCollide", "in words")
    assert body_of(change.job, change)["status"]["late"] == {"reason": "DeadlinesCollide", "message": "in words"}
    told = cluster(NODES, [job("j", spec=DUE, status={"late": change.late.to_wire()})])
    assert decided(told, MID_ROUND, late("j"), "fill").changes == []
    assert decided(told, MID_ROUND).changes == [], "without a plan the old words stand"
    healed = only(decided(told, MID_ROUND, plan(), "fill"))
    assert healed.late is None
    assert "late" not in body_of(healed.job, healed)["status"]


@pytest.mark.parametrize("more", [{"status": {"phase": "Succeeded"}, "spec": DUE}, {"status": {}, "spec": {}}])
def test_who_is_done_or_has_no_deadline_any_more_is_not_late(more: dict[str, Any]) -> None:
    status = {**more["status"], "late": {"reason": "DeadlinePast", "message": ""}}
    assert only(decided(cluster(NODES, [job("j", spec=more["spec"], status=status)]), MID_ROUND)).late is None


def estimating(*estimates: tuple[str, float]) -> Plan:
    told = tuple(
        Estimate(job="team/j", gpu_type=gpu_type, steps_per_s=speed, reference="team/x")
        for gpu_type, speed in estimates
    )
    return replace(plan(), estimates=told)


def test_what_is_estimated_of_a_job_is_told_as_long_as_the_plan_goes_by_it() -> None:
    made = estimating(("A100", 7.123456), ("T4", 1.0))
    change = only(decided(cluster(NODES, [job("j")]), MID_ROUND, made, "fill"))
    written = [{"gpuType": "A100", "stepsPerSecond": 7.12}, {"gpuType": "T4", "stepsPerSecond": 1.0}]
    assert body_of(change.job, change)["status"]["estimates"] == written, "and not from which job"
    told = cluster(NODES, [job("j", status={"estimates": written})])
    assert decided(told, MID_ROUND, estimating(("A100", 7.1211), ("T4", 1.0)), "fill").changes == []
    assert decided(told, MID_ROUND).changes == [], "without a plan the old words stand"
    gone = only(decided(told, MID_ROUND, plan(), "fill"))
    assert "estimates" not in body_of(gone.job, gone)["status"]
    backs_off = {"phase": "Queued", "service": {"retryAt": format_time(NOW + 60)}}
    for over in (
        job("j", status={"phase": "Succeeded", "estimates": written}),
        job("j", spec={"suspend": True}, status={"phase": "Suspended", "estimates": written}),
        job("j", status={**backs_off, "estimates": written}),
    ):
        assert only(decided(cluster(NODES, [over]), MID_ROUND, plan(), "fill")).estimates is None
        assert only(decided(cluster(NODES, [over]), MID_ROUND)).estimates is None


def test_a_revoked_lease_far_ahead_is_brought_back_and_an_ordinary_one_is_left() -> None:
    def revoked(until: float) -> ClusterState:
        return cluster(NODES, [job("j", status={"allocation": allocation(share("n1"), state="Revoked", until=until)})])

    change = only(decided(revoked(MID_ROUND.now + 86_400), MID_ROUND))
    assert change.kind is ChangeKind.LEAVE
    until = allocated(change).lease_until
    assert until is not None
    assert parse_time(until) <= MID_ROUND.now + MID_ROUND.rounds.lead_s
    assert decided(revoked(MID_ROUND.now + MID_ROUND.rounds.lead_s), MID_ROUND).changes == []


def test_of_a_job_that_cannot_be_written_nothing_is_decided_and_its_pods_count_as_used() -> None:
    held = allocation(share("n1"), until=AT_PLAN.now + 5)
    state = cluster(NODES, [job("j", status={"allocation": held})], pods=[worker("j", node="n1", gpus=1)])
    out = {key("j"): say(Reason.STATUS_REFUSED, problem="too large")}
    built = build_snapshot(state, mode="round", now=AT_PLAN.now, round_s=20, left_out=out)
    assert built.snapshot.jobs == ()
    assert next(node for node in built.snapshot.nodes if node.name == "n1").gpus_used == 1
    stances = {k: stance(j, AT_PLAN.now) for k, j in state.jobs.items()}
    result = PlanResult(plan(), "round", stances, built.refused, left_out=out)
    changes = decide(state, AT_PLAN, result, AssumedBindings()).changes
    assert [change.kind for change in changes] in ([], [ChangeKind.STAY]), "renewed at the most, never revoked"
    gone = cluster(NODES, [job("j", status={"allocation": held})])
    free = build_snapshot(gone, mode="round", now=AT_PLAN.now, round_s=20, left_out=out).snapshot.nodes
    assert all(node.gpus_used == 0 for node in free), "without pods it holds nothing"


def test_of_each_kind_namespaces_take_turns_in_writing() -> None:
    def change(namespace: str, name: str, kind: ChangeKind) -> StatusChange:
        view = replace(job(name), key=Key(namespace, name))
        return StatusChange(view, kind, None, None)

    flood = [change("flood", f"j{index}", ChangeKind.ENTER) for index in range(3)]
    team = [change("team", "a", ChangeKind.ENTER), change("team", "b", ChangeKind.QUEUE)]
    leaves = change("flood", "gone", ChangeKind.LEAVE)
    ordered = in_turns([leaves, *flood, *team])
    assert [str(one.job.key) for one in ordered] == [
        "flood/gone", "flood/j0", "team/a", "flood/j1", "flood/j2", "team/b",
    ]  # fmt: skip


def test_a_pass_writes_all_that_runs_depend_on_and_some_of_the_reasons_for_waiting() -> None:
    def changes(kind: ChangeKind, count: int) -> list[StatusChange]:
        return [StatusChange(job(f"{kind.name}-{index}".lower()), kind, None, None) for index in range(count)]

    runs = [one for kind in ChangeKind if kind < ChangeKind.QUEUE for one in changes(kind, REASONS_AT_ONCE + 5)]
    reasons, positions = changes(ChangeKind.QUEUE, REASONS_AT_ONCE + 5), changes(ChangeKind.POSITION, 25)
    written = affordable([*runs, *reasons, *positions])
    assert written == [*runs, *reasons[:REASONS_AT_ONCE], *positions[:POSITIONS_AT_ONCE]]
    assert affordable(reasons[:7]) == reasons[:7]
