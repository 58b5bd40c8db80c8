"""Somebody deletes status.allocation behind everybody's back: the run is closed and the job goes on elsewhere."""

import json

from support.operator.world import World
from synergy_api.timestamps import parse_time


def running_gang(**spec: object) -> World:
    world = World(gpus=2, gpusPerWorker=1, **spec)
    world.settle()
    world.grant(("n1", 2, 6000, 16))
    world.run_all()
    return world


def lose_allocation(world: World) -> None:
    del world.job["status"]["allocation"]
    world._touch(world.job)


def test_a_run_without_its_allocation_leaves_and_its_service_counts_until_then() -> None:
    world = running_gang()
    world.wait(50)
    lose_allocation(world)
    world.settle()
    assert world.status.phase == "Yielding", "its workers may still save"
    assert all("deletionTimestamp" in pod["metadata"] for pod in world.pods.values())
    world.reap()
    world.settle()
    service = world.status.service
    assert service is not None
    assert (service.ended_run, service.running_since) == (1, None)
    assert service.attained_gpu_seconds == 100
    assert world.status.phase == "Queued"
    assert world.reason("Running") == "PlaceLost"


def test_the_next_run_does_not_take_over_the_lost_runs_start() -> None:
    """The plan may be faster than the operator: the new place is there before the old run is closed."""
    world = running_gang()
    world.wait(50)
    lose_allocation(world)
    world.grant(("n2", 2, 6000, 16))
    world.settle()
    world.reap()
    world.settle()
    world.wait(100)
    world.run_all()
    service = world.status.service
    assert service is not None
    assert service.run == 2
    assert parse_time(service.running_since or "") == world.now
    assert service.attained_gpu_seconds == 100
    assert world.pod_names() == ["job-2-0", "job-2-1"]


def test_workers_that_had_finished_count() -> None:
    world = running_gang()
    lose_allocation(world)
    for name in world.pod_names():
        world.exit(name, 0, json.dumps({"outcome": "finished", "step": 100, "checkpoint_step": 100}))
    world.settle()
    assert world.status.phase == "Succeeded"


def test_a_missing_worker_is_missed_although_no_allocation_names_it() -> None:
    world = running_gang()
    lose_allocation(world)
    del world.pods["job-1-1"]
    world.exit("job-1-0", 0)
    world.settle()
    assert world.status.phase == "Queued"
    assert world.reason("Running") == "WorkerLost"


def test_a_profile_run_without_its_allocation_is_closed() -> None:
    world = World(profile={"mode": "Auto"}, gpuTypes=["V100"])
    world.settle()
    world.grant(("n1", 1, 12000, 64), purpose="Profile")
    world.settle()
    assert world.jobs
    lose_allocation(world)
    world.settle()
    world.reap()
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.ended_run == 1
    assert not world.jobs
    assert world.status.phase == "Profiling"
