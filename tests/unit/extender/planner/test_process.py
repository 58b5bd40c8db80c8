"""The planner's process moves its jobs on in place, and plans as if each snapshot were its first."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from support.extender.cluster import GI, NOW, allocation, cluster, job, node_object, share
from support.extender.happenings import EVENTS, Event, World
from synergy_api.timestamps import format_time
from synergy_core.model import snapshot as core
from synergy_core.model.config import Mode, PlanConfig
from synergy_core.plan import plan
from synergy_extender.planner.process import Planner
from synergy_extender.planner.question import Answer, Asked, planned_of, question_after
from synergy_extender.snapshot.known.snapshot import KnownSnapshot
from synergy_extender.snapshot.snapshot import build_snapshot

CONFIG = PlanConfig(policy="las", mechanism="tune")
POLICIES = ("fifo", "srtf", "las", "2d-las", "max-min-fairness")


@given(EVENTS, st.sampled_from(POLICIES), st.lists(st.sampled_from(["", "lead lost", "no clocks"]), min_size=30))
def test_whatever_happened_the_plan_is_that_of_the_snapshot_alone(
    events: list[Event], policy: str, more: list[str]
) -> None:
    world, known, planner = World(), KnownSnapshot(), Planner()
    before: Asked | None = None
    modes: tuple[Mode, ...] = ("round", "fill")
    for number, (event, also) in enumerate(zip(events, more, strict=False)):
        world.happens(event)
        config = PlanConfig(policy=policy, mechanism="tune", mode=modes[number % 2])
        known = KnownSnapshot() if also == "lead lost" else known
        built = build_snapshot(world.state(), mode=config.mode, now=world.now, round_s=20, known=known)
        asked = Asked(built.snapshot, {}) if also == "no clocks" else Asked(built.base, built.clocks)
        answer = planner.answer(msgspec.msgpack.encode(question_after(before, asked, config, 60.0)))
        assert isinstance(answer, Answer)
        assert planned_of(answer, built.snapshot.jobs).plan == plan(built.snapshot, config)
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


def test_times_of_a_job_without_a_clock_stay() -> None:
    """As of a job in a profile run. With its waiting time gone on it would be promoted, and take the only GPU."""
    one, other = core.Job(name="one", gpus=1, arrival_s=1.0), core.Job(name="other", gpus=1, arrival_s=2.0)
    node = core.Node(name="n1", gpu_type="V100", gpus=1, cpu_millis=8000, memory_bytes=GI)
    before: Asked | None = None
    planner = Planner()
    for now in (10.0, 1e6):
        asked = Asked(core.Snapshot(nodes=(node,), jobs=(one, other), now=now, round_s=20.0), {})
        answer = planner.answer(msgspec.msgpack.encode(question_after(before, asked, CONFIG, 1.0)))
        assert isinstance(answer, Answer)
        assert planned_of(answer, asked.base.jobs).plan == plan(asked.base, CONFIG)
        before = asked
