"""The condition `OnTime` of a job with a deadline."""

import json

import pytest

from support.operator.objects import START
from support.operator.world import World
from synergy_api.timestamps import format_time
from synergy_operator.job.status_write import operator_part


def job_due(seconds: float = 1000.0) -> World:
    world = World(slo={"deadline": format_time(START + seconds)})
    world.settle()
    return world


def said(world: World) -> tuple[str, str]:
    (condition,) = (c for c in world.status.conditions if c.type == "OnTime")
    return condition.status, condition.reason


def tell(world: World, reason: str) -> None:
    """The plan says that the job will be late; nothing once `reason` is empty."""
    late = {"reason": reason, "message": f"{reason} in words"} if reason else None
    world.job["status"]["late"] = late
    world.settle()


def test_a_job_without_a_deadline_has_no_such_condition() -> None:
    world = World()
    world.settle()
    assert world.reason("OnTime") == ""


@pytest.mark.parametrize("reason", ["DeadlineTooTight", "DeadlinesCollide"])
def test_what_the_plan_says_stands_in_the_condition_as_long_as_it_says_so(reason: str) -> None:
    world = job_due()
    assert said(world) == ("True", "DeadlineAhead")
    tell(world, reason)
    assert said(world) == ("False", reason)
    assert world.message("OnTime") == f"{reason} in words"
    assert reason in world.posted()
    assert world.status.problem is None, "it keeps the job from nothing"
    assert operator_part(world.status).late is None, "another writer's field"
    tell(world, "")
    assert said(world) == ("True", "DeadlineAhead")


def test_a_deadline_passes_without_anybody_doing_anything() -> None:
    world = job_due(1000.0)
    assert world.settle().requeue_after == pytest.approx(1000.0)
    world.wait(1000.0)
    world.settle()
    assert said(world) == ("False", "DeadlinePast")
    assert world.settle().requeue_after is None


def test_the_plans_words_of_another_moment_or_version_are_not_repeated() -> None:
    world = job_due()
    for reason in ("DeadlinePast", "OfAnotherVersion"):
        tell(world, reason)
        assert said(world) == ("True", "DeadlineAhead")


@pytest.mark.parametrize(
    ("after", "verdict"), [(10.0, ("True", "DeadlineKept")), (1001.0, ("False", "DeadlineMissed"))]
)
def test_in_the_end_it_says_what_was(after: float, verdict: tuple[str, str]) -> None:
    world = job_due()
    world.grant()
    world.run_all()
    world.wait(after)
    world.exit("job-1-0", 0, json.dumps({"outcome": "finished", "step": 100}))
    world.settle()
    assert world.status.phase == "Succeeded"
    assert said(world) == verdict


def test_a_deadline_that_is_moved_or_taken_away_is_followed() -> None:
    world = job_due(-1.0)
    assert said(world) == ("False", "DeadlinePast")
    world.edit(lambda spec: spec.update(slo={"deadline": format_time(START + 60)}))
    world.settle()
    assert said(world) == ("True", "DeadlineAhead")
    world.edit(lambda spec: spec.pop("slo"))
    world.settle()
    assert world.reason("OnTime") == ""
