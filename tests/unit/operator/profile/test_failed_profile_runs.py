"""What goes wrong with a profile series: points that fail, places and pods that are lost, refusals."""

import pytest

from support.operator.objects import node
from support.operator.profile_world import (
    AUTO,
    SIDE,
    TRAIN,
    asking,
    failed,
    give_place,
    granted,
    knee,
    measured,
    run_point,
)
from support.operator.world import World
from synergy_api.timestamps import format_time
from synergy_operator.views.refusals import Refusals


@pytest.mark.parametrize(
    ("message", "reason", "words"),
    [
        (failed("Crashed", "the command ended with exit code 3", "Traceback"), "ProfileCrashed", "Traceback"),
        (failed("NoSteps", "no step in 60 s"), "ProfileNoSteps", "synergy_job.iterate"),
        (failed("Timeout", "30 of 50 steps"), "ProfileTimeout", "timeoutSeconds"),
        (failed("TooNoisy", "error 0.3"), "ProfileTooNoisy", "spec.profile.steps"),
        (failed("BadCommand", "no such file"), "ProfileBadCommand", "command"),
        ("Segmentation fault", "ProfileNoResult", "'Segmentation fault'"),
        ("", "ProfileNoResult", "exit code 1"),
        ('{"outcome": "measured", "steps_per_second": NaN}', "ProfileNoResult", "exit code 1"),
        ('{"outcome": "measured", "steps_per_second": -1}', "ProfileNoResult", "exit code 1"),
        ("[1, 2]", "ProfileNoResult", "exit code 1"),
        ("[" * 3000, "ProfileNoResult", "exit code 1"),
        (measured(2.0, relative_error=1e200), "ProfileNoResult", "relative_error: Input should be less than"),
        (measured(2.0, rss=2**63), "ProfileNoResult", "max_rss_bytes: Input should be less than"),
    ],
)
def test_a_point_is_tried_twice_and_then_the_job_has_failed(message: str, reason: str, words: str) -> None:
    world = granted()
    for name in ("job-1-12000", "job-1-12000b"):
        assert world.status.phase == "Profiling"
        assert name in world.jobs
        world.bind(f"{name}-x")
        world.start(f"{name}-x")
        world.exit(f"{name}-x", 1, message)
        world.finish_job(name, failed="BackoffLimitExceeded")
        world.settle()
    assert world.status.phase == "Failed"
    assert world.status.profile is not None
    assert world.status.profile.state == "Failed"
    assert world.reason("Profiled") == reason
    assert words in world.message("Profiled")
    assert world.reason("Finished") == "ProfileFailed"
    assert reason in world.posted()


def test_a_point_killed_for_memory_says_what_to_raise() -> None:
    world = granted()
    for name in ("job-1-12000", "job-1-12000b"):
        world.bind(f"{name}-x")
        world.start(f"{name}-x")
        world.exit(f"{name}-x", 137, reason="OOMKilled")
        world.settle()
    assert world.reason("Profiled") == "ProfileOutOfMemory"
    assert "8Gi" in world.message("Profiled")


def test_a_point_that_fails_once_is_measured_the_second_time() -> None:
    world = granted()
    world.bind()
    world.start()
    world.exit("job-1-12000-x", 1, failed("TooNoisy", "error 0.3"))
    world.finish_job("job-1-12000", failed="BackoffLimitExceeded")
    world.settle()
    assert run_point(world, knee) == 12000
    assert world.status.profile is not None
    assert world.status.profile.points[0].job == "job-1-12000b"


def test_a_job_that_kubernetes_ended_at_its_deadline_timed_out() -> None:
    world = granted()
    for name in ("job-1-12000", "job-1-12000b"):
        world.pods.pop(f"{name}-x")
        world.finish_job(name, failed="DeadlineExceeded")
        world.settle()
    assert world.reason("Profiled") == "ProfileTimeout"


def test_an_evicted_profile_pod_is_no_failure() -> None:
    world = granted()
    world.bind()
    world.start()
    world.settle()
    world.refuse("job-1-12000-x", "Evicted", "the node was low on memory")
    world.finish_job("job-1-12000", failed="BackoffLimitExceeded")
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.last is not None
    assert (service.last.outcome, service.failures) == ("Evicted", 0)
    assert world.status.phase == "Profiling"
    assert "low on memory" in world.message("Running")


def test_a_profile_pod_that_is_not_bound_gives_the_place_back() -> None:
    world = granted()
    world.cannot_bind("job-1-12000-x", "Insufficient cpu")
    assert world.settle().requeue_after == pytest.approx(30.0)
    world.wait(30)
    world.settle()
    assert world.pod_names() == []
    assert world.jobs == {}
    assert world.reason("Running") == "GangNotBound"
    assert "Insufficient cpu" in world.message("Running")


def test_a_profile_job_without_a_pod_says_where_to_look() -> None:
    world = granted()
    world.pods.clear()
    assert world.settle().requeue_after == pytest.approx(10.0)
    world.wait(10)
    assert world.settle().requeue_after == pytest.approx(20.0)
    assert world.reason("Running") == "ProfileMeasuring"
    world.wait(50)
    world.settle()
    assert world.reason("Running") == "ProfilePodMissing"
    assert "kubectl describe job job-1-12000" in world.message("Running")


def test_an_image_that_cannot_be_pulled_counts_as_a_failed_run() -> None:
    world = granted()
    world.bind()
    world.stuck("job-1-12000-x", "ErrImagePull", "no such image")
    world.settle()
    assert world.reason("Running") == "ImageNotPulled"
    world.wait(120)
    world.settle()
    world.reap()
    world.settle()
    assert world.status.service is not None
    assert world.status.service.failures == 1
    assert "no such image" in world.message("Running")
    assert world.status.phase == "Profiling"


def test_a_place_that_the_sidecars_use_up_fails_the_profile_with_the_numbers() -> None:
    world = asking(template={"spec": {"containers": [TRAIN, SIDE]}})
    world.grant(("n1", 1, 900, 8), purpose="Profile")
    world.settle()
    assert world.status.phase == "Failed"
    assert world.reason("Profiled") == "SidecarsTooLarge"
    assert world.jobs == {}


def test_a_job_the_api_server_refuses_gives_the_place_back_with_its_words() -> None:
    world = asking()
    run = give_place(world)
    world.refusals = Refusals(run=run, message="exceeded quota: jobs")
    world.settle()
    assert world.reason("Running") == "PodRefused"
    assert "exceeded quota: jobs" in world.message("Running")
    assert world.status.phase == "Profiling"


def test_a_job_that_is_refused_for_ever_counts_as_a_failure() -> None:
    world = asking(backoffLimit=0)
    run = give_place(world)
    world.refusals = Refusals(run=run, message="volumeMounts[0].name: Not found", invalid=True)
    world.settle()
    assert world.status.phase == "Failed"
    assert "volumeMounts[0].name" in world.message("Finished")


def test_a_failed_init_container_is_a_shortfall_of_the_point() -> None:
    world = granted()
    for name in ("job-1-12000", "job-1-12000b"):
        world.bind(f"{name}-x")
        ended = {"name": "fetch", "state": {"terminated": {"exitCode": 4}}}
        world.set_pod(f"{name}-x", phase="Failed", initContainerStatuses=[ended])
        world.finish_job(name, failed="BackoffLimitExceeded")
        world.settle()
    assert world.reason("Profiled") == "ProfileBadCommand"
    assert "init container fetch ended with exit code 4" in world.message("Profiled")


def test_a_type_whose_nodes_are_gone_gives_the_place_back() -> None:
    world = World([node("n1"), node("t1", kind="T4")], profile=AUTO)
    world.settle()
    world.grant(("t1", 1, 3000, 8), purpose="Profile", gpu_type="T4")
    del world.nodes["t1"]
    world.settle()
    assert world.jobs == {}
    assert world.status.service is not None
    assert world.status.service.ended_run == 1
    assert world.status.profile is not None
    assert world.status.profile.request is not None
    assert world.status.profile.request.gpu_type == "V100"


def test_a_profile_job_deleted_by_somebody_ends_the_run_as_no_failure() -> None:
    world = granted()
    world.pods.clear()
    world.finish_job("job-1-12000", failed="BackoffLimitExceeded")
    world.settle()
    assert world.status.service is not None
    assert world.status.service.last is not None
    assert world.status.service.last.outcome == "Evicted"
    assert "the pod of profile run job-1-12000 is gone" in world.message("Running")


def test_a_series_that_is_longer_than_its_jobs_are_kept_goes_on() -> None:
    world = granted()
    run_point(world, knee)
    (read,) = (name for name in world.jobs if world.jobs[name]["status"])
    world.jobs[read]["metadata"]["deletionTimestamp"] = format_time(world.now)
    world.delete(f"{read}-x")
    world.reap()
    world.settle()
    assert world.status.phase == "Profiling"
    assert world.status.service is None or world.status.service.last is None
    run_point(world, knee)
    assert world.status.profile is not None
    assert len(world.status.profile.points) == 2
