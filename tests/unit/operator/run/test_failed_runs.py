"""What is a failure of the job: it ends the whole gang, counts once, and says what to change."""

import json

import pytest

from support.operator.world import World, two_workers
from synergy_api.timestamps import parse_time


def test_one_failure_ends_the_whole_gang_and_counts_once() -> None:
    world = two_workers()
    world.run_all()
    world.wait(30)
    world.exit("job-1-1", 1)
    world.settle()
    assert world.status.phase == "Yielding"
    assert "deletionTimestamp" in world.pods["job-1-0"]["metadata"]
    world.exit("job-1-0", 143)
    world.reap()
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.last is not None
    assert (service.failures, service.last.exit_code) == (1, 1)
    assert service.retry_at is not None
    assert parse_time(service.retry_at) == world.now + 10
    assert world.status.phase == "Queued"
    assert "worker 1 ended with exit code 1" in world.message("Running")
    assert world.pod_names() == ["job-1-1"], "the failed pod stays for its log until the next run"
    world.grant(("n1", 2, 6000, 16))
    world.settle()
    assert world.pod_names() == ["job-2-0", "job-2-1"]


def test_the_backoff_doubles_to_five_minutes_and_the_limit_ends_the_job() -> None:
    world = World(backoffLimit=6)
    waits = []
    for run in range(1, 8):
        world.settle()
        world.grant()
        world.run_all()
        world.exit(f"job-{run}-0", 2)
        world.settle()
        assert world.status.service is not None
        assert world.status.service.retry_at is not None
        waits.append(parse_time(world.status.service.retry_at) - world.now)
    assert waits == [10, 20, 40, 80, 160, 300, 300]
    assert world.status.phase == "Failed"
    assert world.reason("Finished") == "BackoffLimitExceeded"
    assert "failed runs: 7, spec.backoffLimit is 6" in world.message("Finished")


def test_a_worker_killed_for_memory_says_what_to_raise() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.exit("job-1-0", 137, reason="OOMKilled")
    world.settle()
    assert world.reason("Running") == "OutOfMemory"
    assert "8Gi" in world.message("Running")
    assert "resources.min.memory" in world.message("Running")


def test_a_command_that_cannot_start_fails_with_the_runtime_s_words() -> None:
    world = World()
    world.settle()
    world.grant()
    world.settle()
    world.bind()
    world.exit("job-1-0", 128, message="exec: no such file", reason="StartError")
    world.settle()
    assert world.reason("Running") == "WorkerNotStarted"
    assert "exec: no such file" in world.message("Running")


def test_a_launcher_with_an_exit_code_of_its_own_has_yielded_if_the_library_says_so() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.exit("job-1-0", 1, json.dumps({"outcome": "yielded", "step": 42, "checkpoint_step": 42}))
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.last is not None
    assert (service.last.outcome, service.last.step, service.failures) == ("Yielded", 42, 0)
    assert world.status.phase == "Queued"


def test_a_run_that_leaves_unasked_and_unsaved_is_tried_less_and_less_often() -> None:
    """For example where another job's checkpoint is in its place: it would train the same steps for ever."""
    world = World()
    world.settle()
    for run, wait in ((1, 10.0), (2, 20.0), (3, 40.0)):
        world.grant()
        world.run_all()
        world.job["status"]["progress"] = {"run": run, "steps": 90, "checkpointSteps": 40}
        why = {"unsaved": "no answer of the extender for 600 s"}
        world.exit(f"job-{run}-0", 75, json.dumps({"outcome": "yielded", "step": 40, "checkpoint_step": 40, **why}))
        world.settle()
        assert world.posted()[-1] == "LeftUnsaved"
        told = "no checkpoint has what it trained after step 40: no answer of the extender for 600 s"
        service = world.status.service
        assert service is not None
        assert service.retry_at is not None
        assert parse_time(service.retry_at) - world.now == pytest.approx(wait, abs=1.0)
        assert service.failures == 0
        assert service.last is not None
        assert told in service.last.reason
        world.wait(wait + 1)
    world.grant()
    world.run_all()
    world.job["status"]["progress"] = {"run": 4, "steps": 90, "checkpointSteps": 40}
    world.exit("job-4-0", 75, json.dumps({"outcome": "yielded", "step": 90, "checkpoint_step": 90}))
    world.settle()
    assert world.status.service is not None
    assert (world.status.service.retry_at, world.status.service.refusals) == (None, 0)


def test_sidecars_do_not_keep_a_finished_run_open() -> None:
    side = {"name": "side", "image": "i", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    container = {"name": "train", "image": "i", "command": ["c"]}
    world = World(template={"spec": {"containers": [container, side]}})
    world.settle()
    world.grant()
    world.run_all()
    assert world.pods["job-1-0"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "2500m"
    assert world.status.workers[0].cpu_millis == 3000
    world.exit("job-1-0", 0)
    world.settle()
    assert "deletionTimestamp" not in world.pods["job-1-0"]["metadata"], "a pod that is about to end keeps its log"
    world.wait(10)
    world.settle()
    assert "deletionTimestamp" in world.pods["job-1-0"]["metadata"]
    world.reap()
    world.settle()
    assert world.status.phase == "Succeeded"


def test_a_share_that_the_sidecars_use_up_fails_with_the_numbers() -> None:
    side = {"name": "side", "image": "i", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}
    container = {"name": "train", "image": "i", "command": ["c"]}
    world = World(template={"spec": {"containers": [container, side]}})
    world.settle()
    world.grant(("n1", 1, 2000, 8))
    world.settle()
    assert world.reason("Running") == "SidecarsTooLarge"
    assert world.pod_names() == []


def test_a_pod_the_api_server_refuses_gives_the_place_back_with_its_words() -> None:
    world = World()
    world.settle()
    run = world.grant()
    world.refusals = type(world.refusals)(run=run, message="exceeded quota: gpus")
    world.settle()
    assert world.reason("Running") == "PodRefused"
    assert "exceeded quota: gpus" in world.message("Running")
    assert world.status.service is not None
    assert world.status.service.failures == 0


def test_a_pod_that_is_refused_for_ever_counts_as_a_failure() -> None:
    world = World(backoffLimit=0)
    world.settle()
    run = world.grant()
    world.refusals = type(world.refusals)(
        run=run, message='unknown field "spec.containers[0].imagePulPolicy"', invalid=True
    )
    world.settle()
    assert world.status.service is not None
    assert world.status.service.failures == 1
    assert world.status.phase == "Failed"
    assert "imagePulPolicy" in world.message("Finished")
