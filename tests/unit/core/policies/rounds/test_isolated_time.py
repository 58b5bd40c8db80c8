"""The account of isolated time against sums by hand: absolute, never falling, the same whichever plans are written."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.planner.planning import GIB, job, node
from synergy_core.model.answer import IsolatedTime
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Profile, Snapshot
from synergy_core.plan import plan

SPEEDS = {"V100": 8.0, "K80": 2.0}
GPUS = {"V100": 2, "K80": 4}
NODES = tuple(node(name.lower(), gpus, gpu_type=name) for name, gpus in GPUS.items())
UNDER = PlanConfig(policy="finish-time-fairness", mechanism="proportional")
STEPS = st.integers(0, 5000)
OTHERS = st.integers(0, 7)


def _job(name: str, gpus: int = 1) -> Job:
    flat = {
        kind: Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((speed,),))
        for kind, speed in SPEEDS.items()
    }
    return job(name, gpus, profiles=flat, gpu_types=tuple(SPEEDS), steps_total=10**7)


def _entry(one: Job, others: int, *, reverse: bool = False) -> IsolatedTime | None:
    """What a plan of the job beside so many others enters for it."""
    jobs = (one, *(_job(f"other{number}") for number in range(others)))
    made = plan(Snapshot(nodes=NODES, jobs=jobs[::-1] if reverse else jobs, now=1e6), UNDER)
    return next((entry for entry in made.isolated if entry.job == one.name), None)


def _isolated_speed(gpus: int, count: int) -> float:
    """1/count of each type's GPUs for a job of so many, at most all of its time (Gavel, section 4.2)."""
    parts = {kind: number / count / gpus for kind, number in GPUS.items()}
    return sum(parts[kind] * SPEEDS[kind] for kind in GPUS) / max(1.0, sum(parts.values()))


@settings(max_examples=40)
@given(
    gpus=st.sampled_from([1, 2]),
    history=st.lists(st.tuples(OTHERS, STEPS, st.sampled_from(["written", "twice", "lost"])), max_size=6),
)
def test_the_account_is_the_sum_over_written_entries_of_steps_by_isolated_speed(
    gpus: int, history: list[tuple[int, int, str]]
) -> None:
    """A lost entry leaves its steps to the next one; an entry that is written twice counts once."""
    one, seconds, covered = _job("j", gpus), 0.0, 0
    for others, steps, fate in history:
        one = replace(one, steps_done=one.steps_done + steps)
        entry = _entry(one, others)
        if one.steps_done == covered:
            assert entry is None
            continue
        assert entry is not None
        expected = seconds + (one.steps_done - covered) / _isolated_speed(gpus, others + 1)
        assert entry.seconds == pytest.approx(expected)
        assert entry.seconds > one.isolated_s
        assert entry.steps == one.steps_done
        if fate == "lost":
            continue
        one = replace(one, isolated_s=entry.seconds, isolated_steps=entry.steps)
        seconds, covered = expected, one.steps_done
        if fate == "twice":
            assert _entry(one, others) is None


@settings(max_examples=20)
@given(others=OTHERS, parts=st.lists(STEPS, min_size=1, max_size=6))
def test_how_often_plans_are_made_does_not_change_the_account(others: int, parts: list[int]) -> None:
    often, once = _job("j"), replace(_job("j"), steps_done=sum(parts))
    for steps in parts:
        often = replace(often, steps_done=often.steps_done + steps)
        entry = _entry(often, others)
        if entry is not None:
            often = replace(often, isolated_s=entry.seconds, isolated_steps=entry.steps)
    only = _entry(once, others)
    assert often.isolated_s == pytest.approx(0.0 if only is None else only.seconds)


@settings(max_examples=20)
@given(others=OTHERS, steps=st.integers(1, 5000), entered=STEPS, seconds=st.floats(0, 1e6))
def test_neither_the_order_of_jobs_nor_a_second_plan_changes_an_entry(
    others: int, steps: int, entered: int, seconds: float
) -> None:
    one = replace(_job("j"), steps_done=entered + steps, isolated_s=seconds, isolated_steps=float(entered))
    first = _entry(one, others)
    assert first is not None
    assert _entry(one, others) == first
    other_way = _entry(one, others, reverse=True)
    assert other_way is not None
    assert (other_way.steps, other_way.seconds) == (first.steps, pytest.approx(first.seconds))


@pytest.mark.parametrize("policy", ["max-min-fairness", "makespan", "2d-las", "fifo"])
def test_other_policies_keep_no_account(policy: str) -> None:
    one = replace(_job("j"), steps_done=100)
    assert plan(Snapshot(nodes=NODES, jobs=(one,), now=1e6), replace(UNDER, policy=policy)).isolated == ()
