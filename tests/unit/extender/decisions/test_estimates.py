"""What waiting jobs are told of their start, and when that alone is worth a write."""

from collections.abc import Mapping
from typing import Any

import pytest

from support.extender.cluster import NOW, cluster, job, key, node_object
from synergy_api.parts.waiting import QueueStatus
from synergy_api.timestamps import format_time
from synergy_core.model.answer import Plan, Waiting
from synergy_extender.cluster.ledger import AssumedBindings
from synergy_extender.cluster.views import Key
from synergy_extender.decisions.changes import ChangeKind, StatusChange
from synergy_extender.decisions.decide import decide
from synergy_extender.decisions.estimates import Estimate, moved
from synergy_extender.decisions.plan_result import PlanResult, stance
from synergy_extender.decisions.writing_order import affordable
from synergy_extender.rounds import Moment, Rounds

ROUNDS = Rounds(20)


def entry(start: float | None = None, by: float | None = None, position: int = 1) -> dict[str, Any]:
    told = {"position": position, "reason": "NoFreeGPU", "message": "waits"}
    times = {"estimatedStart": start, "estimatedStartBy": by}
    return {"queue": told | {name: format_time(NOW + at) for name, at in times.items() if at is not None}}


def decided(
    status: dict[str, Any], estimates: Mapping[Key, Estimate] | None, *, message: str = "waits"
) -> list[StatusChange]:
    state = cluster([node_object("n1")], [job("j", status=status)])
    waits = (Waiting(job="team/j", reason="NoFreeGPU", message=message),)
    plan = Plan(allocations=(), waiting=waits, preempted=(), resized=(), policy="las", mechanism="tune")
    result = PlanResult(plan, "round", {k: stance(one, NOW) for k, one in state.jobs.items()})
    moment = Moment(NOW, ROUNDS, ROUNDS.at(NOW))
    return decide(state, moment, result, AssumedBindings(), estimates=estimates).changes


def ahead(start: float, by: float | None = None) -> Mapping[Key, Estimate]:
    return {key("j"): Estimate(NOW + start, None if by is None else NOW + by)}


def queue_of(change: StatusChange) -> QueueStatus:
    assert change.queue is not None
    return change.queue


def test_the_first_estimate_is_written_as_the_last_kind() -> None:
    (change,) = decided(entry(), ahead(600, 900))
    assert change.kind is ChangeKind.ESTIMATE
    told = queue_of(change)
    assert (told.estimated_start, told.estimated_start_by) == (format_time(NOW + 600), format_time(NOW + 900))
    assert told.told == (1, "NoFreeGPU", "waits")


def test_no_end_of_the_range_is_told_where_it_is_beyond_the_horizon() -> None:
    (change,) = decided(entry(), ahead(600))
    assert (queue_of(change).estimated_start_by, queue_of(change).estimated_start) == (None, format_time(NOW + 600))


def test_an_estimate_that_hardly_moved_is_not_written_for_its_own_sake() -> None:
    assert decided(entry(1000, 2000), ahead(1200, 9000)) == []


def test_an_estimate_that_moved_much_is_written() -> None:
    (change,) = decided(entry(1000, 2000), ahead(1400, 2000))
    assert (change.kind, queue_of(change).estimated_start) == (ChangeKind.ESTIMATE, format_time(NOW + 1400))


def test_any_new_estimate_comes_with_a_write_that_happens_anyway() -> None:
    (change,) = decided(entry(1000, 2000), ahead(1010, 2010), message="other words")
    assert (change.kind, queue_of(change).estimated_start) == (ChangeKind.POSITION, format_time(NOW + 1010))


def test_before_the_first_forecast_what_was_told_stays() -> None:
    assert decided(entry(1000, 2000), None) == []
    (change,) = decided(entry(1000, 2000), None, message="other words")
    assert queue_of(change).estimated_start == format_time(NOW + 1000)


def test_what_is_not_known_any_more_is_taken_away() -> None:
    (change,) = decided(entry(1000, 2000), {})
    assert queue_of(change).to_wire() == {"position": 1, "reason": "NoFreeGPU", "message": "waits"}
    assert decided(entry(), {}) == []


@pytest.mark.parametrize(
    ("before", "after", "enough"),
    [(1000, 1333, False), (1000, 1334, True), (1000, 751, False), (1000, 749, True), (10, 69, False), (10, 71, True),
     (-500, -441, False), (-500, -439, True)],
)  # fmt: skip
def test_a_move_counts_beside_the_longer_time_that_remains(before: int, after: int, enough: bool) -> None:
    assert moved(format_time(NOW + before), format_time(NOW + after), NOW) is enough


def test_of_mere_estimates_only_so_many_are_written() -> None:
    (one,) = decided(entry(), ahead(600))
    (reason,) = decided({}, ahead(600))
    assert reason.kind is ChangeKind.QUEUE
    assert affordable([reason, one, one, one], estimates=2) == [reason, one, one]
    assert affordable([one, reason], estimates=0) == [reason]
