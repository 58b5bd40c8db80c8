"""A waiting job's condition and event: the words of its place in the queue, on a change of the reason only."""

import pytest

from support.operator.world import World
from synergy_api.reasons import ENTRIES
from synergy_operator.job.waiting import UNSATISFIABLE, WAITING, wants_to_tell

NEEDS = "needs 1 GPU at once; jobs ahead of it hold them"


def waiting() -> World:
    """A job that waits for free GPUs and has said so."""
    world = World()
    world.settle()
    world.queue("NoFreeGPU", NEEDS)
    world.settle()
    return world


def test_condition_and_event_have_the_words_of_the_queue() -> None:
    world = waiting()
    assert (world.reason("Running"), world.message("Running")) == ("NoFreeGPU", NEEDS)
    (event,) = world.events
    assert (event.kind, event.reason, event.message) == ("Normal", "NoFreeGPU", NEEDS)
    assert world.status.problem is None, "waiting is no problem"


def test_another_position_or_other_numbers_are_neither_written_nor_told() -> None:
    world = waiting()
    writes = world.writes
    world.queue("NoFreeGPU", "needs 2 GPUs at once", position=7)
    world.settle()
    assert (world.writes, len(world.events)) == (writes, 1)


def test_another_reason_is_told() -> None:
    world = waiting()
    world.queue("QuotaFull", "the quota q allows 1")
    world.settle()
    assert world.posted() == ["NoFreeGPU", "QuotaFull"]
    assert world.message("Running") == "the quota q allows 1"


@pytest.mark.parametrize(("mode", "waits_for"), [("Skip", "WaitingForPlan"), ("Auto", "WaitingForProfile")])
def test_before_a_plan_says_why_a_job_waits_for_the_plan_or_for_its_profile(mode: str, waits_for: str) -> None:
    world = World(profile={"mode": mode})
    world.settle()
    assert world.reason("Running") == waits_for


def test_a_job_asks_for_a_turn_only_with_a_reason_to_wait_that_it_has_not_told() -> None:
    world = World()
    world.settle()
    assert not wants_to_tell(world.status), "no plan has said why it waits"
    world.queue("NoFreeGPU", NEEDS)
    assert wants_to_tell(world.status)
    world.settle()
    assert not wants_to_tell(world.status), "it is told"
    world.queue("NoFreeGPU", "needs 2 GPUs at once", position=7)
    assert not wants_to_tell(world.status), "other numbers are no other reason"
    world.queue("QuotaFull", "the quota q allows 1")
    assert wants_to_tell(world.status)


def test_a_reason_that_comes_before_its_turn_is_told_at_its_turn() -> None:
    world = waiting()
    world.told_in = 40.0
    world.queue("QuotaFull", "the quota q allows 1")
    assert world.settle().requeue_after == pytest.approx(40.0)
    assert (world.reason("Running"), world.posted()) == ("NoFreeGPU", ["NoFreeGPU"])
    world.told_in = 0.0
    world.settle()
    assert world.posted() == ["NoFreeGPU", "QuotaFull"]


def test_a_reason_that_was_gone_before_its_turn_is_never_told() -> None:
    world = waiting()
    world.told_in = 40.0
    world.queue("QuotaFull", "the quota q allows 1")
    world.settle()
    world.queue("NoFreeGPU", NEEDS)
    assert world.settle().requeue_after is None
    assert world.posted() == ["NoFreeGPU"]


def test_before_its_turn_a_job_that_ran_says_no_more_than_that_it_waits() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.revoke()
    world.settle()
    world.told_in = 40.0
    world.exit("job-1-0", 75, '{"step": 10}')
    world.queue("NoFreeGPU", NEEDS)
    world.settle()
    assert (world.status.phase, world.reason("Running")) == ("Queued", "WaitingForPlan")
    world.told_in = 0.0
    world.settle()
    assert (world.reason("Running"), world.posted()[-1]) == ("NoFreeGPU", "NoFreeGPU")


def test_a_job_that_waits_to_be_measured_says_why_too() -> None:
    world = World(profile={"mode": "Auto"})
    world.settle()
    world.queue("ProfileShareUsed", "profile runs already hold their share")
    world.settle()
    assert (world.status.phase, world.reason("Running")) == ("Profiling", "ProfileShareUsed")
    assert world.posted() == ["ProfileWaiting", "ProfileShareUsed"]


def test_a_run_that_went_wrong_says_more_than_the_wait_after_it() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.exit("job-1-0", 3)
    world.settle()
    world.queue("NoFreeGPU", NEEDS)
    world.settle()
    assert world.reason("Running") == "WorkerFailed"


def test_a_wait_is_normal_and_what_never_runs_is_a_warning() -> None:
    assert {ENTRIES[reason].event for reason in WAITING} == {"Normal"}
    assert {ENTRIES[reason].event for reason in UNSATISFIABLE} == {"Warning"}
    assert {"NoFreeGPU", "QuotaFull", "NeverPreemptedCap"} <= WAITING
    assert {"NoAllowedNode", "TooManyGPUs", "CannotBePlanned"} <= UNSATISFIABLE
