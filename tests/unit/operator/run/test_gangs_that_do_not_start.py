"""A gang that does not start says why, and gives its place back in time."""

import pytest

from support.operator.world import World, two_workers
from synergy_api.timestamps import format_time, parse_time
from synergy_operator.views.annotations import ANNOTATION_UNGATED_AT


def test_a_half_bound_gang_is_taken_back_whole_after_thirty_seconds() -> None:
    world = two_workers()
    world.settle()
    world.bind("job-1-0")
    world.start("job-1-0")
    world.cannot_bind("job-1-1", "0/2 nodes are available: Insufficient cpu")
    assert world.settle().requeue_after == pytest.approx(30.0)
    world.wait(29)
    world.settle()
    assert world.reason("Running") == "WorkerWaiting"
    world.wait(1)
    world.settle()
    assert world.pod_names() == ["job-1-0"]
    assert "deletionTimestamp" in world.pods["job-1-0"]["metadata"]
    world.reap()
    world.settle()
    assert world.reason("Running") == "GangNotBound"
    assert "Insufficient cpu" in world.message("Running")
    assert world.status.phase == "Queued"


def test_a_gang_that_no_scheduler_looks_at_holds_its_place_for_two_minutes() -> None:
    """A kube-scheduler that is away comes back sooner; pods with a resource claim that is not there it never sees."""
    world = two_workers()
    world.settle()
    world.wait(119)
    assert world.settle().requeue_after == pytest.approx(1.0)
    assert world.status.phase == "Starting"
    assert world.pod_names() == ["job-1-0", "job-1-1"]
    world.wait(1)
    world.settle()
    assert world.pod_names() == []
    assert world.status.phase == "Queued"
    assert world.reason("Running") == "GangNotBound"
    assert "resource claims" in world.message("Running")


def test_a_scheduling_gate_of_the_template_is_named_and_holds_gpus_ever_more_seldom() -> None:
    container = {"name": "train", "image": "i", "command": ["c"]}
    world = two_workers(
        template={"spec": {"containers": [container], "schedulingGates": [{"name": "example.com/mine"}]}}
    )
    waits = []
    for _ in range(3):
        world.settle()
        world.wait(30)
        world.settle()
        assert world.pod_names() == []
        assert "scheduling gate example.com/mine" in world.message("Running")
        service = world.status.service
        assert service is not None
        waits.append(parse_time(service.retry_at or "") - world.now)
        world.wait(waits[-1])
        world.grant(("n1", 2, 6000, 16))
    assert waits == [10, 20, 40]


def test_an_image_that_cannot_be_pulled_is_told_at_once_and_fails_later() -> None:
    world = World()
    world.settle()
    world.grant()
    world.settle()
    world.bind()
    world.stuck("job-1-0", "ImagePullBackOff", "no such image")
    assert world.settle().requeue_after == pytest.approx(120.0)
    assert "no such image" in world.message("Running")
    assert world.posted() == ["WorkersStarting", "ImageNotPulled"]
    assert "correct the image in spec.template" in world.message("Running")
    world.wait(120)
    world.settle()
    world.reap()
    world.settle()
    assert world.reason("Running") == "ImageNotPulled"
    assert world.status.service is not None
    assert world.status.service.failures == 1


def test_of_several_workers_that_cannot_start_the_longest_wait_counts() -> None:
    world = two_workers()
    world.settle()
    world.bind()
    for name in ("job-1-0", "job-1-1"):
        world.stuck(name, "ImagePullBackOff", "no such image")
    later = {ANNOTATION_UNGATED_AT: format_time(world.now + 60)}
    world.pods["job-1-1"]["metadata"]["annotations"] |= later
    world.wait(60)
    assert world.settle().requeue_after == pytest.approx(60.0)
    world.wait(60)
    world.settle()
    assert world.reason("Running") == "ImageNotPulled"
    assert all("deletionTimestamp" in pod["metadata"] for pod in world.pods.values())


def test_a_worker_that_cannot_start_gives_its_place_back_as_soon_as_it_is_asked_to() -> None:
    """However short the rounds, an image that is not there counts as a failure."""
    world = World()
    world.settle()
    world.grant()
    world.settle()
    world.bind()
    world.stuck("job-1-0", "ImagePullBackOff", "no such image")
    world.settle()
    world.revoke()
    world.settle()
    world.reap()
    world.settle()
    assert world.reason("Running") == "ImageNotPulled"
    assert world.status.service is not None
    assert (world.status.service.failures, world.status.service.preemptions) == (1, 0)


def test_a_volume_that_never_attaches_does_not_keep_the_gpus_for_ever() -> None:
    world = World()
    world.settle()
    world.grant()
    world.settle()
    world.bind()
    world.warnings["job-1-0"] = ("FailedAttachVolume", "Multi-Attach error for volume data")
    world.wait(899)
    world.settle()
    assert world.reason("Running") == "VolumeNotMounted"
    assert world.settle().requeue_after == pytest.approx(1.0)
    assert world.status.phase == "Starting"
    world.wait(1)
    world.settle()
    world.reap()
    world.settle()
    assert world.reason("Running") == "WorkerNotStarted"
    assert "after 900 s" in world.message("Running")
    assert world.status.service is not None
    assert (world.status.service.failures, world.status.service.ended_run) == (1, 1)
