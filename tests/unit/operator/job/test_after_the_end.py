"""A finished job: what stays, what goes, and when the job itself goes."""

import pytest

from support.operator.world import World
from synergy_operator.job.events import events


def finished(code: int = 0, **spec: object) -> World:
    """A job whose only run has ended."""
    world = World(**{"backoffLimit": 0, **spec})
    world.settle()
    world.grant()
    world.run_all()
    world.exit("job-1-0", code)
    world.settle()
    return world


def test_a_job_is_deleted_when_its_time_is_over() -> None:
    world = finished(ttlSecondsAfterFinished=60)
    assert world.settle().requeue_after == pytest.approx(60.0)
    world.wait(59)
    world.settle()
    assert not world.deleted
    world.wait(1)
    world.settle()
    assert world.deleted


def test_a_job_without_a_time_to_live_stays() -> None:
    world = finished()
    world.wait(10**7)
    assert world.settle().requeue_after is None
    assert not world.deleted


def test_a_grant_that_came_too_late_is_given_back_and_changes_nothing_else() -> None:
    world = finished(code=1)
    assert world.status.phase == "Failed"
    world.grant()
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.last is not None
    assert service.ended_run == 2
    assert service.last.run == 1
    assert world.status.phase == "Failed"
    assert world.pod_names() == ["job-1-0"]


def test_a_finished_job_writes_nothing_more() -> None:
    world = finished()
    writes = world.writes
    world.wait(100)
    world.nodes.clear()
    world.settle()
    assert world.writes == writes


def test_a_pod_left_over_from_an_ended_run_is_deleted_unless_it_holds_the_last_log() -> None:
    world = finished()
    stray = {**world.pods["job-1-0"], "metadata": {**world.pods["job-1-0"]["metadata"]}}
    stray["metadata"] |= {"name": "job-0-0", "labels": {**stray["metadata"]["labels"], "kube-synergy.dev/run": "0"}}
    world.pods["job-0-0"] = stray
    world.settle()
    assert world.pod_names() == ["job-1-0"]


def test_pods_of_a_run_that_is_not_known_yet_are_left_alone() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.allocate(run=0)
    world.job["status"].pop("allocation")
    world.job["status"]["service"] = {}
    world.settle()
    assert world.pod_names() == ["job-1-0"]


def test_the_same_status_makes_no_event() -> None:
    world = finished()
    assert events(world.status, world.status) == ()


def test_a_life_is_told_in_a_few_events() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.revoke(lease_in=5)
    world.settle()
    world.exit("job-1-0", 75, '{"step": 10}')
    world.settle()
    world.grant()
    world.run_all()
    world.exit("job-2-0", 0)
    world.settle()
    assert world.posted() == [
        "WorkersStarting",
        "WorkersRunning",
        "Yielding",
        "WorkersLeft",
        "WorkersStarting",
        "WorkersRunning",
        "WorkersSucceeded",
        "JobSucceeded",
    ]


def test_the_words_of_another_version_are_passed_on() -> None:
    world = World()
    world.settle()
    world.job["status"]["service"]["last"] = {"run": 1, "outcome": "Evicted", "reason": "Hibernated: run 1 sleeps"}
    world.settle()
    assert world.reason("Running") == "RunEnded"
    assert world.message("Running") == "run 1 ended: Hibernated: run 1 sleeps"
