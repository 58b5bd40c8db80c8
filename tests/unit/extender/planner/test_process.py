"""The planner's process moves its jobs on in place, and plans as if each snapshot were its first."""

import msgspec
import pytest
from hypothesis import given

from support.extender.cluster import GI, NOW, allocation, cluster, job, node_object, share
from support.extender.happenings import EVENTS, Event, World
from synergy_api.timestamps import format_time
from synergy_core.model.config import PlanConfig
from synergy_core.plan import plan
from synergy_extender.planner.process import Planner
from synergy_extender.planner.question import Answer, Asked, planned_of, question_after
from synergy_extender.snapshot.known.snapshot import KnownSnapshot
from synergy_extender.snapshot.snapshot import build_snapshot

CONFIG = PlanConfig(policy="las", mechanism="tune")


@given(EVENTS)
def test_whatever_happened_the_plan_is_that_of_the_snapshot_alone(events: list[Event]) -> None:
    world, known, planner = World(), KnownSnapshot(), Planner()
    before: Asked | None = None
    for event in events:
        world.happens(event)
        built = build_snapshot(world.state(), mode="round", now=world.now, round_s=20, known=known)
        asked = Asked(built.base, built.clocks)
        answer = planner.answer(msgspec.msgpack.encode(question_after(before, asked, CONFIG, 1.0)))
        assert isinstance(answer, Answer)
        assert planned_of(answer, built.snapshot.jobs).plan == plan(built.snapshot, CONFIG)
        before = asked


def test_jobs_that_nothing_is_sent_of_grow_older() -> None:
    """One of two jobs fits. The one that has run so long that it is demoted gives way."""
    held = {"phase": "Running", "allocation": allocation(share("n1")), "service": {"run": 1}}
    held["service"] |= {"runningSince": format_time(NOW), "runningGPUType": "V100"}  # type: ignore[operator]
    state = cluster([node_object("n1", gpus=1)], [job("a", status=held), job("b")])
    config = PlanConfig(policy="2d-las", mechanism="tune")
    known, planner = KnownSnapshot(), Planner()
    before: Asked | None = None
    found = []
    for now in (NOW + 1, NOW + 1e5):
        built = build_snapshot(state, mode="round", now=now, round_s=20, known=known)
        asked = Asked(built.base, built.clocks)
        question = question_after(before, asked, config, 1.0)
        assert len(question.jobs) == (2 if before is None else 0)
        answer = planner.answer(msgspec.msgpack.encode(question))
        assert isinstance(answer, Answer)
        found.append([one.job for one in planned_of(answer, built.snapshot.jobs).plan.allocations])
        before = asked
    assert found == [["team/a"], ["team/b"]]


def test_a_question_that_cannot_be_read_is_answered_with_what_is_wrong() -> None:
    answer = Planner().answer(b"\x01")
    assert isinstance(answer, str)
    assert answer.startswith("ValidationError: ")


@pytest.mark.parametrize("jobs", [0, 3])
def test_times_of_jobs_without_a_clock_stay(jobs: int) -> None:
    built = build_snapshot(
        cluster([node_object("n1", memory_gib=GI)], [job(f"j{index}") for index in range(jobs)]),
        mode="round",
        now=NOW,
        round_s=20,
    )
    asked = Asked(built.snapshot, {})
    answer = Planner().answer(msgspec.msgpack.encode(question_after(None, asked, CONFIG, 1.0)))
    assert isinstance(answer, Answer)
    assert planned_of(answer, built.snapshot.jobs).plan == plan(built.snapshot, CONFIG)
