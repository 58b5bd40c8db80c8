"""Runs that cannot begin, or end without their checkpoint: what is said, and that they do not hold GPUs in a loop."""

import json
from collections.abc import Callable

import pytest

from support.operator.world import World
from synergy_api.timestamps import parse_time
from synergy_operator.edge.caches.pod_events import PodEventCache
from synergy_operator.views.pod import read_pod
from synergy_operator.views.refusals import Refusals

CLAIM = 'persistentvolumeclaim "data" not found. not found'
PULLED = 'MountVolume.SetUp failed for volume "data": configmap "data" not found'


def bound() -> World:
    """A job whose pod is bound and whose containers are not there yet."""
    world = World()
    world.settle()
    world.grant()
    world.settle()
    world.bind()
    world.settle()
    return world


def wait_of(world: World) -> float:
    """Seconds until the job may run again."""
    service = world.status.service
    assert service is not None
    assert service.retry_at is not None
    return parse_time(service.retry_at) - world.now


def test_a_volume_that_does_not_mount_is_told_in_the_kubelets_words_and_fails_the_run() -> None:
    world = bound()
    assert world.settle().requeue_after == pytest.approx(5.0), "that the gate has fallen is shown then"
    world.wait(5)
    assert world.settle().requeue_after == pytest.approx(5.0)
    world.warnings["job-1-0"] = ("FailedMount", PULLED)
    world.wait(5)
    assert world.settle().requeue_after == pytest.approx(20.0)
    assert world.reason("Running") == "VolumeNotMounted"
    assert 'configmap "data" not found' in world.message("Running")
    assert "correct spec.template.spec.volumes" in world.message("Running")
    assert world.posted() == ["WorkersStarting", "VolumeNotMounted"]
    assert world.status.problem is not None
    assert world.status.problem.reason == "VolumeNotMounted"
    world.wait(110)
    world.settle()
    world.reap()
    world.settle()
    assert world.status.service is not None
    assert world.status.service.failures == 1
    assert world.reason("Running") == "VolumeNotMounted"


def test_a_volume_that_another_node_must_let_go_first_is_waited_for() -> None:
    world = bound()
    world.warnings["job-1-0"] = ("FailedMount", "Unable to attach or mount volumes: timed out waiting")
    world.wait(130)
    world.settle()
    assert world.status.phase == "Starting"
    world.start()
    world.settle()
    assert (world.status.phase, world.status.problem) == ("Running", None)


def test_a_pod_that_merely_pulls_its_image_has_no_problem() -> None:
    world = bound()
    world.wait(60)
    world.settle()
    assert (world.reason("Running"), world.status.problem) == ("WorkersStarting", None)
    assert world.posted() == ["WorkersStarting"]


def test_a_sandbox_that_cannot_be_made_is_told_too() -> None:
    world = bound()
    world.warnings["job-1-0"] = ("FailedCreatePodSandBox", "network not ready")
    world.wait(10)
    world.settle()
    assert world.reason("Running") == "WorkerWaiting"
    assert "FailedCreatePodSandBox: network not ready" in world.message("Running")
    assert "kubectl describe pod job-1-0" in world.message("Running")


@pytest.mark.parametrize("word", ["CreateContainerConfigError", "CreateContainerError"])
def test_a_container_that_cannot_be_made_says_what_it_names(word: str) -> None:
    world = bound()
    world.stuck("job-1-0", word, 'secret "keys" not found')
    world.settle()
    assert world.reason("Running") == "ContainerNotCreated"
    assert 'secret "keys" not found' in world.message("Running")


def claim_not_there(world: World, run: int) -> None:
    """kube-scheduler finds no volume for the run's pod."""
    world.cannot_bind(f"job-{run}-0", CLAIM)
    world.wait(30)


def over_quota(world: World, run: int) -> None:
    """The API server refuses the run's pod."""
    world.refusals = Refusals(run=run, message="exceeded quota: gpus")


@pytest.mark.parametrize(("happens", "reason"), [(claim_not_there, "VolumeNotMounted"), (over_quota, "PodRefused")])
def test_a_run_that_is_refused_again_and_again_is_tried_more_and_more_rarely(
    happens: Callable[[World, int], None], reason: str
) -> None:
    world = World()
    world.settle()
    waits = []
    for run in range(1, 11):
        world.grant()
        if happens is over_quota:
            happens(world, run)
        world.settle()
        if happens is not over_quota:
            happens(world, run)
            world.settle()
            world.reap()
        world.settle()
        assert world.reason("Running") == reason
        waits.append(round(wait_of(world)))
        world.wait(waits[-1])
    assert waits == [10, 20, 40, 80, 160, 320, 600, 600, 600, 600]
    assert world.status.service is not None
    assert (world.status.service.failures, world.status.service.refusals) == (0, 10)
    assert world.status.phase == "Queued"
    world.refusals = Refusals()
    world.grant()
    world.run_all()
    world.revoke()
    world.exit("job-11-0", 75)
    world.settle()
    assert world.status.service.refusals == 0


def test_a_profile_job_whose_pod_is_refused_gives_its_place_back_at_once_with_the_words() -> None:
    world = World(profile={"mode": "Auto"})
    world.settle()
    world.grant(("n1", 1, 12000, 8), purpose="Profile")
    world.settle()
    world.pods.clear()
    world.warnings["job-1-12000"] = ("FailedCreate", 'pods "x" is forbidden: maximum cpu usage per Container is 1')
    world.wait(10)
    world.settle()
    assert world.reason("Running") == "PodRefused"
    assert "maximum cpu usage per Container is 1" in world.message("Running")
    assert "LimitRange" in world.message("Running")
    assert world.jobs == {}
    assert wait_of(world) == pytest.approx(10)


def killed_after_its_lease(*, reported: bool, said: str = "", **spec: object) -> World:
    """A run whose lease ended and whose worker had to be killed."""
    world = World(**spec)
    world.settle()
    world.grant()
    world.run_all()
    if reported:
        world.job["status"]["progress"] = {"run": 1, "steps": 40, "checkpointSteps": 20}
    world.revoke()
    world.settle()
    world.wait(30)
    world.settle()
    world.wait(30)
    world.exit("job-1-0", 137, said)
    world.reap()
    world.settle()
    return world


@pytest.mark.parametrize(("step", "left_at"), [(40, 40), (-1, None)])
def test_a_worker_that_saved_and_was_killed_while_it_left_has_not_failed(step: int, left_at: int | None) -> None:
    said = json.dumps({"outcome": "yielded", "step": step, "checkpoint_step": step})
    service = killed_after_its_lease(reported=True, said=said).status.service
    assert service is not None
    assert service.last is not None
    assert (service.last.outcome, service.failures, service.last.step) == ("Yielded", 0, left_at)


def test_the_deadline_of_the_template_is_named() -> None:
    world = World(backoffLimit=3)
    world.settle()
    world.grant()
    world.run_all()
    world.pods["job-1-0"]["status"] |= {"reason": "DeadlineExceeded", "message": "Pod was active longer than 5 s"}
    world.exit("job-1-0", 137)
    world.settle()
    world.reap()
    world.settle()
    assert world.reason("Running") == "WorkerFailed"
    assert "exit code 137 (Pod was active longer than 5 s)" in world.message("Running")


def test_a_checkpoint_that_is_never_written_says_what_is_lost_and_is_no_failure_of_the_job() -> None:
    world = killed_after_its_lease(reported=True)
    service = world.status.service
    assert service is not None
    assert service.last is not None
    assert (service.last.outcome, service.failures, service.preemptions) == ("Yielded", 0, 1)
    assert service.retry_at is None
    assert world.reason("Running") == "CheckpointNotWritten"
    assert "killed 60 s after its lease had ended" in world.message("Running")
    assert "at least 20 steps are lost, the job goes on from step 20" in world.message("Running")
    assert "make the save function of synergy_job.iterate return sooner" in world.message("Running")
    assert world.posted()[-1] == "CheckpointNotWritten"


@pytest.mark.parametrize(
    ("reported", "spec"),
    [
        (False, {}),
        (True, {"preemption": "Signal"}),
        (True, {"throughput": {"regex": "step (?P<step>[0-9]+)"}}),
    ],
)
def test_a_worker_without_the_library_that_is_killed_after_its_lease_has_not_failed(
    reported: bool, spec: dict[str, object]
) -> None:
    world = killed_after_its_lease(reported=reported, **spec)
    assert world.status.service is not None
    assert world.status.service.last is not None
    assert (world.status.service.last.outcome, world.status.service.failures) == ("Yielded", 0)


def test_a_worker_that_writes_its_checkpoint_in_its_grace_period_has_not_failed() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.job["status"]["progress"] = {"run": 1, "steps": 40, "checkpointSteps": 20}
    world.revoke()
    world.settle()
    world.wait(30)
    world.settle()
    world.exit("job-1-0", 75, json.dumps({"outcome": "yielded", "step": 41, "checkpoint_step": 41}))
    world.reap()
    world.settle()
    assert world.status.service is not None
    assert world.status.service.last is not None
    assert (world.status.service.last.outcome, world.status.service.last.step) == ("Yielded", 41)


def test_a_checkpoint_function_that_raises_is_named_whichever_rank_it_was() -> None:
    world = World(gpus=2, gpusPerWorker=1)
    world.settle()
    world.grant(("n1", 2, 6000, 16))
    world.run_all()
    world.exit("job-1-0", 1)
    told = {"outcome": "failed", "function": "save", "error": "OSError: No space left on device"}
    world.exit("job-1-1", 1, json.dumps(told))
    world.settle()
    assert world.reason("Running") == "CheckpointFailed"
    assert "the save function of worker 1 raised OSError: No space left on device" in world.message("Running")
    assert "log of pod job-1-1" in world.message("Running")


def test_a_checkpoint_function_that_raises_fails_the_run_whatever_the_exit_code() -> None:
    """A launcher, or a script that goes on after the exception, may end with 0."""
    world = World()
    world.settle()
    world.grant(("n1", 1, 3000, 8))
    world.run_all()
    world.exit("job-1-0", 0, json.dumps({"outcome": "failed", "function": "save", "error": "OSError: disk full"}))
    world.settle()
    assert world.reason("Running") == "CheckpointFailed"
    assert world.status.phase != "Succeeded"


def test_what_was_heard_of_a_job_is_forgotten_with_it() -> None:
    world = bound()
    pod = read_pod(world.pods["job-1-0"])
    pod_events, key = PodEventCache(), ("team", "job")
    pod_events.asked(key, pod.uid, 1.0)
    pod_events.pod_deleted(key, pod)
    assert pod_events.of(key) == PodEventCache().of(key), "it said nothing of how it ended"
    world.exit("job-1-0", 3)
    pod_events.pod_deleted(key, read_pod(world.pods["job-1-0"]))
    assert list(pod_events.of(key).deleted) == ["job-1-0"]
    pod_events.forget(key)
    assert pod_events.of(key) == PodEventCache().of(key)
