"""The planner's process moves its jobs on in place, and plans as if each snapshot were its first."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.extender.cluster import NOW, allocation, cluster, job, node_object, share
from support.extender.happenings import EVENTS, Event, World
from synergy_api.timestamps import format_time
from synergy_core.colocation.kinds.pairs_on_type import PairsOnType
from synergy_core.colocation.predictors.generic import EFFECTS, SUMS
from synergy_core.colocation.predictors.model_format import SharingModel
from synergy_core.colocation.predictors.references import References
from synergy_core.model import snapshot as core
from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.config import Mode, PlanConfig
from synergy_core.model.measurement import SharedMeasurement
from synergy_core.model.usage import Usage
from synergy_core.plan import plan
from synergy_extender.planner.process import Planner
from synergy_extender.planner.question import Answer, Asked, planned_of, question_after
from synergy_extender.snapshot.known.snapshot import KnownSnapshot
from synergy_extender.snapshot.snapshot import build_snapshot
from synergy_extender.snapshot.times import all_at, move_on

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
        assert len(question.jobs.jobs) == (2 if before is None else 0)
        answer = planner.answer(msgspec.msgpack.encode(question))
        assert isinstance(answer, Answer)
        found.append([one.job for one in planned_of(answer, built.snapshot.jobs).plan.allocations])
        before = asked
    assert found == [["team/a"], ["team/b"]]


def test_a_question_that_cannot_be_read_is_answered_with_what_is_wrong() -> None:
    answer = Planner().answer(b"\x01")
    assert isinstance(answer, str)
    assert answer.startswith("ValidationError: ")


def test_jobs_that_move_on_in_place_are_as_jobs_that_are_made_anew() -> None:
    """Without a clock, as in a profile run, no time of a job goes on."""
    views = [job("a"), job("b"), job("c")]
    built = build_snapshot(cluster([node_object("n1")], views), mode="round", now=NOW, round_s=20)
    clocks = {name: clock for name, clock in built.clocks.items() if name != "team/c"}
    jobs, waited = built.base.jobs, [one.waiting_s for one in built.base.jobs]
    anew = all_at(jobs, clocks, NOW + 50)
    move_on(jobs, clocks, NOW + 50)
    assert jobs == anew
    assert [one.waiting_s - earlier for one, earlier in zip(jobs, waited, strict=True)] == [50, 50, 0]


NAMED = Usage(compute=0.3, bandwidth=0.1, model="A")
MODEL = SharingModel(gpu_type="V100", mps=True, measurements=3, sums=SUMS, effects=EFFECTS)
BY_REFERENCES = replace(MODEL, references=References.measured([SharedMeasurement((NAMED, NAMED), (0.9, 0.9))]))


def _who_share(measured: Mapping[str, float]) -> core.Snapshot:
    """Three jobs and a GPU. `measured` is what some of them kept beside a reference."""
    jobs = tuple(
        core.Job(
            name=name, gpus=1, tenant="t", sharing=True, steps_total=1000, measured={"V100": 5.0},
            usage={"V100": replace(NAMED, model=name)},
            beside_references=tuple(
                core.BesideReference(gpu_type="V100", usage=NAMED, kept=kept, reference_kept=kept)
                for kept in (measured.get(name),)
                if kept is not None
            ),
        )
        for name in ("A", "B", "C")
    )  # fmt: skip
    node = core.Node(
        name="n1", gpu_type="V100", gpus=1, cpu_millis=8000, memory_bytes=1 << 34, replicas=2, gpu_memory_bytes=1 << 34
    )
    return core.Snapshot(nodes=(node,), jobs=jobs, now=0.0, round_s=20.0)


@pytest.mark.parametrize(
    ("model", "concerned"),
    # of 6 pairs, also of each job and one like it; by references a measurement changes those of the job alone
    [(MODEL, 6), (BY_REFERENCES, 3)],
    ids=["effects", "references"],
)
def test_what_two_jobs_keep_is_found_once_as_long_as_model_and_measurements_are_the_same(
    model: SharingModel, concerned: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: Counter[str] = Counter()
    kept = PairsOnType.kept

    def counted(self: PairsOnType, two: Ints) -> Floats:
        found["pairs"] += two.shape[1]
        return kept(self, two)

    monkeypatch.setattr(PairsOnType, "kept", counted)
    config = PlanConfig(policy="max-min-fairness", mechanism="proportional", colocation="gavel")
    planner = Planner({"V100": model})

    snapshots = [_who_share(measured) for measured in ({}, {}, {"B": 0.8}, {"B": 0.8}, {"B": 0.8, "C": 0.6})]
    counts: list[int] = []
    before: Asked | None = None
    for snapshot in snapshots:
        asked, earlier = Asked(snapshot, {}), found["pairs"]
        question = question_after(before, asked, config, 10.0)
        assert isinstance(planner.answer(msgspec.msgpack.encode(question)), Answer)
        counts.append(found["pairs"] - earlier)
        before = asked
    assert counts == [6, 0, concerned, 0, concerned]
