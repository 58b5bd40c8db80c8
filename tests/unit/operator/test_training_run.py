"""A training run from grant to release, and everything that can go wrong on the way."""

import json
from collections.abc import Callable

import pytest

from support.operator_world import World, node
from synergy_api.timestamps import parse_time
from synergy_operator.actions import CreatePod, DeletePod, EnsureService, UngatePod


def two_workers(**spec: object) -> World:
    """A job of two GPUs with one per worker, on one node."""
    world = World(gpus=2, gpusPerWorker=1, **spec)
    world.settle()
    world.grant(("n1", 2, 6000, 16))
    return world


def test_a_new_job_without_a_profile_is_queued_and_waits_for_the_plan() -> None:
    world = World()
    world.settle()
    assert world.status.phase == "Queued"
    assert world.reason("Valid") == "Accepted"
    assert world.reason("Profiled") == "ProfileSkipped"
    assert world.reason("Running") == "WaitingForPlan"
    assert world.status.observed_generation == 1


def test_all_pods_are_made_before_any_gate_falls() -> None:
    world = two_workers()
    made = world.step()
    kinds = [type(action) for action in made.todo]
    assert kinds[0] is EnsureService
    assert kinds.count(CreatePod) == 2
    assert UngatePod not in kinds
    world.settle()
    assert world.status.service is not None
    assert world.status.service.run == 1
    assert all(not pod["spec"]["schedulingGates"] for pod in world.pods.values())


def test_no_gate_falls_before_the_run_is_recorded() -> None:
    world = two_workers()
    world.step()
    recorded = world.step()
    assert UngatePod not in [type(action) for action in recorded.todo]
    assert UngatePod in [type(action) for action in world.step().todo]


def test_a_quick_start_is_written_twice_once_the_pods_are_there_and_once_they_run() -> None:
    world = World()
    world.settle()
    world.grant()
    written = world.writes
    world.settle()
    assert (world.writes, world.status.phase) == (written + 1, "Starting")
    world.bind("job-1-0")
    world.start("job-1-0")
    world.settle()
    assert (world.writes, world.status.phase) == (written + 2, "Running")


def test_that_a_gate_has_fallen_is_shown_where_the_worker_does_not_run_soon() -> None:
    world = World()
    world.settle()
    world.grant()
    wait = world.settle().look_again_in
    assert [worker.state for worker in world.status.workers] == ["Gated"]
    assert wait is not None
    assert wait <= 5.0
    world.wait(wait)
    world.settle()
    assert [worker.state for worker in world.status.workers] == ["Waiting"]
    assert world.reason("ResourcesAsPlanned") == "AsPlanned"


def test_gates_stay_until_the_place_is_really_free() -> None:
    world = World()
    world.settle()
    world.grant(admitted=False)
    world.settle()
    assert world.pods["job-1-0"]["spec"]["schedulingGates"] == [{"name": "kube-synergy.dev/place"}]
    assert world.status.phase == "Starting"
    assert world.reason("Running") == "WaitingForRoom"
    world.allocate(admitted=True)
    world.settle()
    assert world.pods["job-1-0"]["spec"]["schedulingGates"] == []


def test_a_gate_of_the_user_is_left_alone() -> None:
    container = {"name": "train", "image": "i", "command": ["c"]}
    template = {"spec": {"containers": [container], "schedulingGates": [{"name": "mine"}]}}
    world = World(template=template)
    world.settle()
    world.grant()
    world.settle()
    assert world.pods["job-1-0"]["spec"]["schedulingGates"] == [{"name": "mine"}]


def test_the_job_runs_once_every_worker_does() -> None:
    world = two_workers()
    world.settle()
    world.bind()
    world.start("job-1-0")
    world.settle()
    assert world.status.phase == "Starting"
    assert world.message("Running") == "run 1: 1 of 2 workers run"
    world.wait(2)
    world.start("job-1-1")
    world.settle()
    assert world.status.phase == "Running"
    service = world.status.service
    assert service is not None
    assert service.running_since is not None
    assert parse_time(service.running_since) == world.now
    assert world.status.start_time == service.running_since
    assert [worker.state for worker in world.status.workers] == ["Running", "Running"]


def test_a_job_is_done_when_all_workers_ended_with_zero() -> None:
    world = two_workers()
    world.run_all()
    world.wait(50)
    world.exit("job-1-0", 0, json.dumps({"outcome": "finished", "step": 100}))
    world.settle()
    assert world.status.phase == "Running"
    world.wait(10)
    world.exit("job-1-1", 0)
    world.settle()
    service = world.status.service
    assert world.status.phase == "Succeeded"
    assert service is not None
    assert service.last is not None
    assert (service.last.outcome, service.last.step, service.last.exit_code) == ("Succeeded", 100, 0)
    assert service.ended_run == 1
    assert service.attained_gpu_seconds == pytest.approx(120.0)
    assert service.received_seconds == {"V100": 60.0}
    assert world.status.completion_time is not None
    assert world.reason("Finished") == "JobSucceeded"
    assert world.pod_names() == ["job-1-0", "job-1-1"], "the pods of the last run stay for their logs"


def test_a_run_so_short_that_it_was_never_seen_running_counts_all_the_same() -> None:
    world = World()
    world.settle()
    world.grant()
    world.settle()
    world.bind()
    world.start()
    world.wait(5)
    world.exit("job-1-0", 0)
    world.settle()
    service = world.status.service
    assert service is not None
    assert world.status.phase == "Succeeded"
    assert service.attained_gpu_seconds == pytest.approx(5.0)
    assert world.status.start_time is not None


def test_workers_that_yield_at_the_lease_end_are_queued_again_with_their_step() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.revoke(lease_in=10)
    world.settle()
    assert world.status.phase == "Yielding"
    assert "another job is first" in world.message("Running")
    world.wait(10)
    world.exit("job-1-0", 75, json.dumps({"outcome": "yielded", "step": 42, "checkpoint_step": 42}))
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.last is not None
    assert world.status.phase == "Queued"
    assert (service.ended_run, service.preemptions, service.failures) == (1, 1, 0)
    assert (service.last.outcome, service.last.step, service.last.exit_code) == ("Yielded", 42, 75)
    assert service.retry_at is None
    assert world.pod_names() == [], "the pods of a run that yielded are deleted"
    assert "WorkersLeft" in world.posted()


def test_a_worker_with_the_library_has_thirty_seconds_beyond_its_lease() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.revoke(lease_in=10)
    assert world.settle().look_again_in == pytest.approx(40.0)
    world.wait(39)
    world.settle()
    assert "deletionTimestamp" not in world.pods["job-1-0"]["metadata"]
    world.wait(1)
    world.settle()
    assert "deletionTimestamp" in world.pods["job-1-0"]["metadata"]
    world.reap()
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.last is not None
    assert service.last.outcome == "Yielded"
    assert service.last.reason.startswith("LeaseOver")


@pytest.mark.parametrize("preemption", ["Signal", "Never"])
def test_a_worker_without_the_library_is_told_to_go_at_its_lease_end(preemption: str) -> None:
    world = World(preemption=preemption)
    world.settle()
    world.grant()
    world.run_all()
    world.revoke(lease_in=10)
    world.settle()
    world.wait(9)
    world.settle()
    assert "deletionTimestamp" not in world.pods["job-1-0"]["metadata"]
    world.wait(1)
    world.settle()
    assert "deletionTimestamp" in world.pods["job-1-0"]["metadata"]
    world.exit("job-1-0", 143)
    world.settle()
    assert world.status.service is not None
    assert world.status.service.failures == 0
    assert world.status.phase == "Queued"


def test_what_never_started_gives_its_place_back_at_once() -> None:
    world = World()
    world.settle()
    world.grant(admitted=False)
    world.settle()
    world.revoke(lease_in=100)
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.ended_run == 1
    assert service.preemptions == 0
    assert world.pod_names() == []


def test_a_grant_of_nothing_is_given_back() -> None:
    world = World()
    world.settle()
    world.grant()
    world.allocate(workers=[])
    world.settle()
    assert world.status.service is not None
    assert world.status.service.ended_run == 1
    assert world.status.phase == "Queued"


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


def node_pressure(world: World) -> None:
    """The kubelet evicts a worker, and kills it when its grace period is over."""
    taken = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    world.set_pod("job-1-1", conditions=[taken], reason="Evicted", message="The node was low on resource: memory.")
    world.exit("job-1-1", 137)


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (node_pressure, "WorkerLost"),
        (lambda w: w.delete("job-1-1"), "WorkerLost"),
        (lambda w: w.pods.pop("job-1-1"), "WorkerLost"),
        (lambda w: w.refuse("job-1-1", "OutOfnvidia.com/gpu", "no GPU left"), "WorkerRefused"),
        (
            lambda w: w.set_pod(
                "job-1-1",
                conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}],
            ),
            "WorkerLost",
        ),
        (lambda w: w.exit("job-1-1", 137, reason="ContainerStatusUnknown"), "WorkerLost"),
    ],
)
def test_a_lost_worker_takes_the_gang_back_and_is_no_failure(harm: Callable[[World], object], reason: str) -> None:
    world = two_workers()
    world.run_all()
    harm(world)
    world.settle()
    assert "deletionTimestamp" in world.pods["job-1-0"]["metadata"]
    world.exit("job-1-0", 75, json.dumps({"step": 7}))
    world.reap()
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.last is not None
    assert (service.last.outcome, service.failures, service.preemptions) == ("Evicted", 0, 0)
    assert world.status.phase == "Queued"
    assert world.reason("Running") == reason


@pytest.mark.parametrize(
    ("message", "phase"), [("", "Queued"), ("stopped", "Queued"), ('{"outcome": "finished", "step": 100}', "Succeeded")]
)
def test_a_pod_that_was_taken_away_is_done_only_if_it_says_so(message: str, phase: str) -> None:
    """The operator was away meanwhile, and the script ends with 0 on SIGTERM."""
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.delete("job-1-0")
    world.exit("job-1-0", 0, message)
    world.settle()
    world.reap()
    world.settle()
    assert world.status.phase == phase


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


def test_a_pod_that_its_node_refused_is_queued_again() -> None:
    world = World()
    world.settle()
    world.grant()
    world.settle()
    world.bind()
    world.refuse("job-1-0", "OutOfnvidia.com/gpu", "Pod was rejected: no GPU left")
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.last is not None
    assert service.last.outcome == "Evicted"
    assert service.retry_at is not None
    assert parse_time(service.retry_at) == world.now + 10
    assert "no GPU left" in world.message("Running")


def test_peers_that_fail_because_a_node_is_lost_are_no_failure() -> None:
    world = World(gpus=2)
    world.settle()
    world.grant(("n1", 1, 3000, 8), ("n2", 1, 3000, 8))
    world.run_all()
    world.nodes["n2"] = node("n2", ready=False)
    world.exit("job-1-0", 1)
    world.settle()
    assert world.reason("Running") == "WorkerLost"
    assert "node n2 does not report" in world.message("Running")


def test_a_pod_on_a_lost_node_is_given_up_only_after_its_grace_is_long_over() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.nodes["n1"] = node("n1", ready=False)
    world.settle()
    assert world.status.phase == "Running", "an unready node alone ends nothing"
    world.delete("job-1-0")
    assert world.settle().look_again_in == pytest.approx(60.0)
    world.wait(59)
    world.settle()
    assert "job-1-0" in world.pods
    world.wait(1)
    world.settle()
    assert world.pod_names() == []
    assert world.status.phase == "Queued"


def test_a_half_bound_gang_is_taken_back_whole_after_thirty_seconds() -> None:
    world = two_workers()
    world.settle()
    world.bind("job-1-0")
    world.start("job-1-0")
    world.cannot_bind("job-1-1", "0/2 nodes are available: Insufficient cpu")
    assert world.settle().look_again_in == pytest.approx(30.0)
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
    assert world.settle().look_again_in == pytest.approx(1.0)
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
    assert world.settle().look_again_in == pytest.approx(120.0)
    assert "no such image" in world.message("Running")
    assert world.posted() == ["ImageNotPulled"]
    assert "correct the image in spec.template" in world.message("Running")
    world.wait(120)
    world.settle()
    world.reap()
    world.settle()
    assert world.reason("Running") == "ImageNotPulled"
    assert world.status.service is not None
    assert world.status.service.failures == 1


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
    world.complaints["job-1-0"] = ("FailedAttachVolume", "Multi-Attach error for volume data")
    world.wait(899)
    world.settle()
    assert world.reason("Running") == "VolumeNotMounted"
    assert world.settle().look_again_in == pytest.approx(1.0)
    assert world.status.phase == "Starting"
    world.wait(1)
    world.settle()
    world.reap()
    world.settle()
    assert world.reason("Running") == "WorkerNotStarted"
    assert "after 900 s" in world.message("Running")
    assert world.status.service is not None
    assert (world.status.service.failures, world.status.service.ended_run) == (1, 1)


def test_stragglers_are_stopped_thirty_seconds_after_the_first_worker_left() -> None:
    world = two_workers()
    world.run_all()
    world.exit("job-1-0", 75, json.dumps({"step": 12}))
    assert world.settle().look_again_in == pytest.approx(30.0)
    world.wait(30)
    world.settle()
    world.reap()
    world.settle()
    service = world.status.service
    assert service is not None
    assert service.last is not None
    assert (service.last.outcome, service.last.step) == ("Yielded", 12)
    assert service.preemptions == 0, "the lease was not revoked"


def test_the_pod_of_a_failed_worker_stays_for_its_log() -> None:
    world = World(backoffLimit=0)
    world.settle()
    world.grant()
    world.run_all()
    world.exit("job-1-0", 2)
    world.pods["job-1-0"]["status"]["phase"] = "Running"  # the kubelet tells of the container first
    world.settle()
    assert "deletionTimestamp" not in world.pods["job-1-0"]["metadata"]
    world.pods["job-1-0"]["status"]["phase"] = "Failed"
    world.settle()
    assert world.status.phase == "Failed"
    assert world.pod_names() == ["job-1-0"]


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


def test_a_suspended_job_does_not_start_and_says_so() -> None:
    world = World()
    world.settle()
    world.grant()
    world.edit(lambda spec: spec.update(suspend=True))
    world.settle()
    assert world.status.phase == "Suspended"
    assert world.status.service is not None
    assert world.status.service.ended_run == 1
    world.edit(lambda spec: spec.update(suspend=False))
    world.settle()
    assert world.status.phase == "Queued"


def test_the_time_in_which_a_job_is_held_is_kept() -> None:
    world = World()
    world.settle()
    for held in (100.0, 20.0):
        world.edit(lambda spec: spec.update(suspend=True))
        world.settle()
        world.wait(held)
        world.settle()
        world.edit(lambda spec: spec.update(suspend=False))
        world.settle()
        world.wait(7)
        world.settle()
    assert world.status.service is not None
    assert (world.status.service.suspended_since, world.status.service.suspended_seconds) == (None, 120.0)


@pytest.mark.parametrize(
    ("said", "seconds"), [("1.25", 1.25), ("true", None), ('"long"', None), ("-0.5", None), ("1e999", None)]
)
def test_what_the_last_save_took_is_kept(said: str, seconds: float | None) -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.revoke()
    world.exit("job-1-0", 75, f'{{"outcome": "yielded", "step": 9, "checkpoint_step": 9, "save_seconds": {said}}}')
    world.settle()
    assert world.status.service is not None
    assert world.status.service.last is not None
    assert (world.status.service.last.step, world.status.service.last.save_seconds) == (9, seconds)


def test_a_suspended_run_leaves_when_the_plan_revokes_it() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.edit(lambda spec: spec.update(suspend=True))
    world.settle()
    assert world.status.phase == "Running"
    world.revoke()
    world.exit("job-1-0", 75)
    world.settle()
    assert world.status.phase == "Suspended"
    assert world.reason("Running") == "Suspended"


def test_a_run_waits_for_the_pods_of_an_earlier_one() -> None:
    world = World()
    world.settle()
    world.grant()
    world.run_all()
    world.allocate(run=2)
    actions = world.step()
    assert [type(a) for a in actions.todo if isinstance(a, CreatePod)] == []
    assert DeletePod in [type(a) for a in actions.todo]
    world.reap()
    world.settle()
    assert world.pod_names() == ["job-2-0"]


def test_a_job_that_is_being_deleted_is_left_to_the_garbage_collector() -> None:
    world = World()
    world.settle()
    world.grant()
    world.job["metadata"]["deletionTimestamp"] = world.job["metadata"]["creationTimestamp"]
    assert world.step().todo == ()
