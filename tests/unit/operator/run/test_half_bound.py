"""A gang is bound whole or taken back whole within 30 s of its first binding."""

import pytest

from support.operator.world import World


def gang() -> World:
    world = World(gpus=2, gpusPerWorker=1)
    world.settle()
    world.grant(("n1", 2, 6000, 16))
    world.settle()
    return world


def test_a_gang_that_a_scheduler_is_late_for_has_its_thirty_seconds() -> None:
    """kube-scheduler was away for minutes; its first binding must not be the gang's end."""
    world = gang()
    world.wait(300)
    world.bind("job-1-0")
    world.settle()
    world.wait(29)
    world.settle()
    assert world.status.phase == "Starting"
    world.bind("job-1-1")
    world.start()
    world.settle()
    assert world.status.phase == "Running"


def test_a_half_bound_gang_that_is_told_to_leave_does_not_stay_half_bound() -> None:
    """Nobody binds the rest any more, and a worker that waits for the others hears of no lease."""
    world = gang()
    world.bind("job-1-0")
    world.start("job-1-0")
    world.settle()
    world.wait(20)
    world.revoke(lease_in=100)
    assert world.settle().requeue_after == pytest.approx(10.0)
    world.wait(10)
    world.settle()
    assert "deletionTimestamp" in world.pods["job-1-0"]["metadata"]
    world.reap()
    world.settle()
    assert world.status.phase == "Queued"
    assert world.reason("Running") == "GangNotBound"


def test_the_thirty_seconds_count_from_the_first_binding() -> None:
    world = World(gpus=3, gpusPerWorker=1)
    world.settle()
    world.grant(("n1", 3, 9000, 24))
    world.settle()
    world.bind("job-1-0")
    world.settle()
    world.wait(20)
    world.bind("job-1-1")
    assert world.settle().requeue_after == pytest.approx(10.0)
    world.wait(10)
    world.settle()
    assert world.reason("Running") == "GangNotBound"
