"""What is said of waiting and late jobs, and which estimates are shown."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from support.extender.cluster import (
    NOW,
    allocation,
    cluster,
    job,
    key,
    share,
)
from support.extender.deciding import (
    AT_PLAN,
    MID_ROUND,
    NODES,
    decided,
    only,
    plan,
)
from synergy_api.reasons import Reason, say
from synergy_api.timestamps import format_time
from synergy_core.model.answer import Estimate, Late, Plan
from synergy_extender.cluster.views import JobView
from synergy_extender.decisions.changes import ChangeKind
from synergy_extender.decisions.decide import Decision
from synergy_extender.writing.writer import body_of


def queue(decision: Decision) -> Mapping[str, tuple[int, str] | None]:
    return {
        c.job.key.name: (c.queue.position, c.queue.reason) if c.queue is not None else None for c in decision.changes
    }


def late(name: str, reason: str = "DeadlinesCollide") -> Plan:
    told = Late(job=f"team/{name}", reason=reason, message="in words")
    return Plan(allocations=(), waiting=(), preempted=(), resized=(), policy="las", mechanism="tune", late=(told,))


DUE = {"slo": {"deadline": "2030-01-01T00:00:00Z"}}


def estimating(*estimates: tuple[str, float]) -> Plan:
    told = tuple(
        Estimate(job="team/j", gpu_type=gpu_type, steps_per_s=speed, reference="team/x")
        for gpu_type, speed in estimates
    )
    return replace(plan(), estimates=told)


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


@pytest.mark.parametrize(
    "ahead",
    [
        job("stays", status={"phase": "Running", "allocation": allocation(share("n1", 2)), "service": {"run": 1}}),
        job("ended", status={"phase": "Succeeded"}),
        job(
            "not-released",
            status={
                "phase": "Succeeded",
                "allocation": allocation(share("n1", 2)),
                "service": {"run": 1, "endedRun": 1},
            },
        ),
    ],
    ids=lambda one: one.key.name,
)
def test_a_run_that_stays_and_a_job_that_has_ended_are_ahead_of_nobody(ahead: JobView) -> None:
    state = cluster(NODES, [ahead, job("a")])
    made = plan(waiting=(ahead.key.name, "a"))
    assert queue(decided(state, MID_ROUND, made, "fill"))["a"] == (1, "NoFreeGPU")


def test_a_run_that_leaves_for_the_next_round_keeps_its_place_in_the_queue() -> None:
    leaves = job("leaves", status={"phase": "Running", "allocation": allocation(share("n1", 2)), "service": {"run": 1}})
    decision = decided(cluster(NODES, [leaves, job("a")]), AT_PLAN, plan(waiting=("leaves", "a")))
    assert queue(decision) == {"leaves": None, "a": (2, "NoFreeGPU")}


@pytest.mark.parametrize(
    ("outcome", "said"), [("Failed", "failed; failure 1 of 3"), ("Evicted", "was lost or refused")]
)
def test_a_job_that_backs_off_hears_whether_its_last_run_failed_or_was_lost(outcome: str, said: str) -> None:
    last = {"run": 1, "outcome": outcome, "reason": "why"}
    service = {"run": 1, "endedRun": 1, "failures": 1, "retryAt": format_time(AT_PLAN.now + 30), "last": last}
    state = cluster(NODES, [job("j", status={"service": service})])
    told = only(decided(state, AT_PLAN, plan())).queue
    assert told is not None
    assert said in told.message


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
