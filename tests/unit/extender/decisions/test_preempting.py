"""When a preempted run must leave, and what is recorded of it."""

from dataclasses import replace
from typing import Any

import pytest

from support.extender.cluster import NOW, allocation, cluster, job, key, node_object, share
from synergy_api.timestamps import parse_time
from synergy_core.explain.preemptions import Preemption, PreemptionRule
from synergy_core.model.answer import Plan
from synergy_core.model.config import Mode
from synergy_extender.cluster.ledger import AssumedBindings
from synergy_extender.decisions.changes import ChangeKind, StatusChange
from synergy_extender.decisions.decide import decide
from synergy_extender.decisions.plan_result import PlanResult, stance
from synergy_extender.rounds import Moment, Rounds
from synergy_extender.writing.writer import body_of

ROUNDS = Rounds(600)
BEFORE = [{"at": "2026-01-01T00:00:00Z", "run": 0, "rule": "Move"}]


def _decided(
    mode: Mode, found: Preemption | None, *, purpose: str = "Train", admitted: bool = True
) -> list[StatusChange]:
    """What is written of a running job that has no place in the plan."""
    index = ROUNDS.at(NOW) + (mode == "round")
    held = allocation(share("n1", 8), until=ROUNDS.end(index), round=index, purpose=purpose, admitted=admitted)
    status: dict[str, Any] = {"allocation": held, "phase": "Running", "preemptions": BEFORE}
    state = cluster([node_object("n1")], [job("runs", gpus=8, status=status)])
    plan = Plan(allocations=(), waiting=(), preempted=("team/runs",), resized=(), policy="fifo", mechanism="tune")
    ended = {} if found is None else {"team/runs": found}
    stances = {one: stance(view, NOW) for one, view in state.jobs.items()}
    result = PlanResult(plan, mode, stances, preemptions=ended)
    return decide(state, Moment(NOW, ROUNDS, index), result, AssumedBindings()).changes


def _left_at(change: StatusChange) -> float:
    assert change.allocation is not None
    assert (change.kind, change.allocation.state) == (ChangeKind.LEAVE, "Revoked")
    assert change.allocation.lease_until is not None
    return parse_time(change.allocation.lease_until)


URGENT = Preemption("team/runs", PreemptionRule.URGENT, ("team/now",))
BY_CLASS = Preemption("team/runs", PreemptionRule.PRIORITY_CLASS, ("team/high",))


@pytest.mark.parametrize("mode", ["fill", "round"])
def test_a_run_leaves_an_urgent_job_after_the_notice_of_a_lease_whatever_the_round(mode: Mode) -> None:
    (change,) = _decided(mode, URGENT)
    assert _left_at(change) == pytest.approx(NOW + ROUNDS.lead_s, abs=1.0)
    assert change.new_preemption is not None
    assert (change.new_preemption.rule, change.new_preemption.by) == ("Urgent", ["team/now"])


def test_a_run_leaves_others_at_the_rounds_end() -> None:
    (change,) = _decided("round", BY_CLASS)
    assert _left_at(change) == ROUNDS.start(ROUNDS.at(NOW) + 1)
    written = body_of(change.job, change)["status"]["preemptions"]
    assert [(one["rule"], one.get("by")) for one in written] == [("Move", None), ("PriorityClass", ["team/high"])]


def test_jobs_of_other_namespaces_are_not_named() -> None:
    across = Preemption("team/runs", PreemptionRule.PRIORITY_CLASS, ("team-b/secret", "other/high", "team/high"))
    (change,) = _decided("round", across)
    assert change.new_preemption is not None
    assert change.new_preemption.by == ["team/high"]
    (change,) = _decided("round", Preemption("team/runs", PreemptionRule.GUARANTEE, ("other/high",)))
    assert change.new_preemption is not None
    assert change.new_preemption.text == "another job gets the GPUs by its tenant's guarantee"


@pytest.mark.parametrize("found", [None, BY_CLASS])
def test_between_rounds_only_an_urgent_job_ends_a_run(found: Preemption | None) -> None:
    for change in _decided("fill", found):
        assert change.allocation is None or change.allocation.state == "Granted"
        assert change.new_preemption is None


def test_a_profile_run_or_one_that_never_had_its_gpus_is_not_recorded() -> None:
    (change,) = _decided("round", BY_CLASS, admitted=False)
    assert _left_at(change) <= NOW
    assert change.new_preemption is None


def test_a_record_of_a_job_that_stays_is_written_again_with_the_rest() -> None:
    status = {"phase": "Queued", "preemptions": BEFORE}
    view = job("waits", status=status)
    change = StatusChange(view, ChangeKind.QUEUE, None, None, preemptions=view.status.preemptions or ())
    assert body_of(view, change)["status"]["preemptions"] == BEFORE
    assert replace(change, preemptions=()).new_preemption is None
    assert key("waits") == view.key
