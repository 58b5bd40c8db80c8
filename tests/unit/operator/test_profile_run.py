"""Profile series: what is asked for, how the points come about, and what ends a series."""

import json
from collections.abc import Callable

import pytest

from support.operator_world import GIB, START, World, node
from synergy_api.profile import SensitivityMatrix
from synergy_api.scheduling_policy import Profiling
from synergy_api.throughput_profile import ThroughputProfileSpec
from synergy_api.timestamps import format_time
from synergy_operator.actions import CreateJob
from synergy_operator.known_profiles import KnownProfile
from synergy_operator.observed import Refusals

AUTO = {"mode": "Auto"}


def measured(speed: float, rss: int = 1 << 28) -> str:
    """The harness's message of a good run."""
    return json.dumps(
        {"outcome": "measured", "steps_per_second": speed, "relative_error": 0.01, "steps": 50, "max_rss_bytes": rss}
    )


def failed(reason: str, message: str, tail: str = "") -> str:
    """The harness's message of a run that came to nothing."""
    return json.dumps({"outcome": "failed", "reason": reason, "message": message, "exit_code": 1, "log_tail": tail})


def asking(**spec: object) -> World:
    """A job that asks for its profile on one type of 24-CPU nodes with 8 GPUs."""
    world = World(**{"profile": AUTO, **spec})
    world.settle()
    return world


def granted(**spec: object) -> World:
    """The same with the place it asked for."""
    world = asking(**spec)
    give_place(world)
    world.settle()
    return world


def give_place(world: World) -> int:
    """The plan grants what is asked for."""
    profile = world.status.profile
    assert profile is not None
    assert profile.request is not None
    request = profile.request
    share = ("n1", request.gpus, request.cpu_millis, request.memory_bytes // GIB)
    return world.grant(share, purpose="Profile", gpu_type=request.gpu_type)


def run_point(world: World, speed_at: Callable[[int], float]) -> int:
    """Let the profile Job that is under way run and end. Returns its CPU point."""
    name = next(name for name in sorted(world.jobs) if not world.jobs[name]["status"])
    point = int(world.jobs[name]["metadata"]["annotations"]["kube-synergy.dev/cpu-millis"])
    world.bind(f"{name}-x")
    world.start(f"{name}-x")
    world.settle()
    world.wait(7)
    world.exit(f"{name}-x", 0, measured(speed_at(point)))
    world.finish_job(name)
    world.settle()
    return point


def knee(point: int) -> float:
    """A pipeline that needs 4.5 CPUs to keep its GPU busy."""
    return min(9.0, point / 500)


def test_the_highest_point_is_four_proportional_shares() -> None:
    world = asking()
    profile = world.status.profile
    assert profile is not None
    assert profile.request is not None
    assert world.status.phase == "Profiling"
    assert profile.state == "Waiting"
    assert profile.request.to_wire() == {
        "gpuType": "V100",
        "gpus": 1,
        "cpuMillis": 12000,
        "memoryBytes": 8 * GIB,
    }
    assert world.reason("Profiled") == "ProfileWaiting"
    assert world.reason("Running") == "WaitingForProfile"


@pytest.mark.parametrize(
    ("spec", "cpu", "memory"),
    [
        ({"resources": {"max": {"cpu": "5"}}}, 5000, 8 * GIB),
        ({"resources": {"max": {"memory": "3Gi"}}}, 12000, 3 * GIB),
        ({"dataset": {"bytes": 4 * GIB, "samples": 10}, "batchSize": 2}, 12000, 12 * GIB),
        ({"dataset": {"bytes": 400 * GIB, "samples": 10}, "batchSize": 2}, 12000, 64 * GIB),
        ({"dataset": {"bytes": 4 * GIB, "samples": 10}}, 12000, 8 * GIB),
    ],
)
def test_the_request_keeps_to_the_spec_and_the_node(spec: dict[str, object], cpu: int, memory: int) -> None:
    world = World(profile=AUTO, **spec)
    pool = {"nodeSelector": {"nvidia.com/gpu.product": "V100"}, "gpuType": "V100", "storageBandwidth": GIB}
    world.pools = [{"metadata": {"name": "pool", "resourceVersion": "1"}, "spec": pool}]
    world.settle()
    assert world.status.profile is not None
    request = world.status.profile.request
    assert request is not None
    assert (request.cpu_millis, request.memory_bytes) == (cpu, memory)


def test_a_small_node_bounds_the_request() -> None:
    world = World([node("n1", gpus=2, cpu=2, gib=4)], profile=AUTO)
    world.settle()
    assert world.status.profile is not None
    assert world.status.profile.request is not None
    assert world.status.profile.request.cpu_millis == 2000


def test_a_profile_pod_is_one_worker_of_the_job() -> None:
    world = granted(gpus=16, gpusPerWorker=2)
    (job,) = world.jobs.values()
    spec = job["spec"]["template"]["spec"]
    container = spec["containers"][0]
    env = {entry["name"]: entry["value"] for entry in container["env"]}
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "2"
    assert container["resources"]["limits"]["cpu"] == "24"
    assert (env["WORLD_SIZE"], env["RANK"], env["PET_NPROC_PER_NODE"]) == ("1", "0", "2")
    assert spec["schedulerName"] == "kube-synergy"


def test_the_harness_wraps_the_user_s_command() -> None:
    world = granted(profile={"mode": "Auto", "steps": 20, "warmupSteps": 3, "timeoutSeconds": 99})
    (job,) = world.jobs.values()
    container = job["spec"]["template"]["spec"]["containers"][0]
    words = [
        "python3",
        "-m",
        "synergy_profiler",
        "--warmup-steps",
        "3",
        "--steps",
        "20",
        "--timeout",
        "99",
        "--",
        "python3",
        "train.py",
    ]
    assert container["command"] == words
    assert container["args"] == ["--fast"]
    assert container["env"][-1] == {"name": "PYTHONPATH", "value": "/opt/kube-synergy/lib"}
    assert job["spec"]["backoffLimit"] == 0
    assert job["spec"]["activeDeadlineSeconds"] == 699
    assert job["metadata"]["name"] == "job-1-12000"


def test_the_harness_is_told_how_steps_are_printed() -> None:
    world = granted(throughput={"regex": "step done$"})
    (job,) = world.jobs.values()
    command = job["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command[command.index("--") - 1] == "--throughput-regex=step done$$"


def test_no_job_is_made_before_the_place_is_really_free() -> None:
    world = asking()
    give_place(world)
    world.allocate(admitted=False)
    world.settle()
    assert world.jobs == {}
    world.allocate(admitted=True)
    world.settle()
    assert sorted(world.jobs) == ["job-1-12000"]


def test_a_series_measures_one_point_after_another_and_ends_with_matrix_and_demand() -> None:
    world = granted()
    points = []
    while world.status.phase == "Profiling":
        points.append(run_point(world, knee))
    profile, service = world.status.profile, world.status.service
    assert profile is not None
    assert service is not None
    assert service.last is not None
    assert points[0] == 12000, "the highest point is measured first"
    assert len(points) == len(set(points)) <= 6, "at most half of the twelve points of the grid"
    assert [point.cpu_millis for point in profile.points] == points
    assert profile.points[0].job == "job-1-12000"
    assert profile.points[0].measured_at == format_time(START + 7)
    assert profile.state == "Complete"
    assert profile.request is None
    (matrix,) = profile.matrices
    assert matrix.cpu_millis == list(range(1000, 13000, 1000))
    assert matrix.memory_bytes == [8 * GIB]
    for cpu, (speed,) in zip(matrix.cpu_millis, matrix.steps_per_second, strict=True):
        assert speed == pytest.approx(knee(cpu), rel=0.1)
    assert profile.demand[0].cpu_millis == 5000
    assert world.status.phase == "Queued"
    assert service.last.outcome == "Profiled"
    assert service.ended_run == 1
    assert service.attained_gpu_seconds == 0.0, "measuring is no training"
    assert world.posted().count("PointMeasured") == len(points)
    assert "ProfileMeasured" in world.posted()


def test_the_next_job_is_made_in_the_same_look_that_records_the_last_point() -> None:
    world = granted()
    name = "job-1-12000"
    world.bind()
    world.start()
    world.settle()
    world.exit(f"{name}-x", 0, measured(9.0))
    world.finish_job(name)
    actions = world.step()
    assert any(isinstance(action, CreateJob) for action in actions.todo)
    assert world.status.profile is not None
    assert len(world.status.profile.points) == 1


def test_a_series_goes_on_where_it_was_after_it_lost_its_place() -> None:
    world = granted()
    first = run_point(world, knee)
    world.revoke(lease_in=20)
    world.settle()
    assert world.settle().look_again_in == pytest.approx(20.0)
    world.wait(20)
    world.settle()
    world.reap()
    world.settle()
    assert world.status.phase == "Profiling"
    assert world.status.service is not None
    assert world.status.service.last is not None
    assert world.status.service.last.outcome == "Yielded"
    give_place(world)
    world.settle()
    points = [first]
    while world.status.phase == "Profiling":
        points.append(run_point(world, knee))
    assert len(points) == len(set(points)), "no point is measured twice"


def test_a_revoked_series_gives_up_between_two_points_without_waiting() -> None:
    world = asking()
    give_place(world)
    world.revoke(lease_in=100)
    world.settle()
    assert world.status.service is not None
    assert world.status.service.ended_run == 1
    assert world.jobs == {}


def test_a_grant_below_the_request_lowers_the_highest_point() -> None:
    world = asking()
    world.grant(("n1", 1, 4000, 4), purpose="Profile")
    world.settle()
    (job,) = world.jobs.values()
    resources = job["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert resources["limits"]["cpu"] == "4"
    assert resources["limits"]["memory"] == "4Gi"


def test_every_gpu_type_is_measured_in_a_run_of_its_own() -> None:
    world = World([node("n1"), node("t1", kind="T4", gpus=4, cpu=16)], profile=AUTO)
    world.settle()
    kinds = []
    for _ in range(2):
        assert world.status.profile is not None
        request = world.status.profile.request
        assert request is not None
        kinds.append(request.gpu_type)
        place = "n1" if request.gpu_type == "V100" else "t1"
        world.grant((place, 1, request.cpu_millis, 8), purpose="Profile", gpu_type=request.gpu_type)
        world.settle()
        run = world.status.service.run if world.status.service else 0
        while world.status.service is not None and world.status.service.ended_run < run:
            run_point(world, knee)
        assert world.status.phase in ("Profiling", "Queued")
    assert kinds == ["T4", "V100"]
    assert world.status.phase == "Queued"
    assert world.status.profile is not None
    assert [matrix.gpu_type for matrix in world.status.profile.matrices] == ["T4", "V100"]
    assert [demand.gpu_type for demand in world.status.profile.demand] == ["T4", "V100"]


def test_a_job_larger_than_a_node_is_measured_on_a_node_and_scaled() -> None:
    world = granted(gpus=16)
    while world.status.phase == "Profiling":
        run_point(world, lambda point: min(9.0, point / 4000))
    profile = world.status.profile
    assert profile is not None
    assert profile.points[0].cpu_millis == 24000
    (matrix,) = profile.matrices
    assert matrix.cpu_millis[-1] == 48000
    assert matrix.memory_bytes == [128 * GIB]
    assert matrix.steps_per_second[-1] == [6.0]


def test_the_memory_axis_follows_from_data_set_and_storage() -> None:
    world = World(profile=AUTO, dataset={"bytes": 8 * GIB, "samples": 8192}, batchSize=64)
    pool = {"nodeSelector": {"nvidia.com/gpu.product": "V100"}, "gpuType": "V100", "storageBandwidth": 512 << 20}
    world.pools = [{"metadata": {"name": "pool", "resourceVersion": "1"}, "spec": pool}]
    world.settle()
    give_place(world)
    world.settle()
    while world.status.phase == "Profiling":
        run_point(world, knee)
    assert world.status.profile is not None
    (matrix,) = world.status.profile.matrices
    assert matrix.memory_bytes[0] == (1 << 28) * 110 // 100, "the least memory is what the processes need, and a tenth"
    assert matrix.memory_bytes[-1] == 16 * GIB
    top = matrix.steps_per_second[-1]
    assert top == sorted(top)
    # 64 MiB a step from an eighth of 512 MiB/s is one step per second where nothing is cached
    assert top[0] == pytest.approx(1.0)
    assert top[-1] == pytest.approx(9.0)
    assert world.status.profile.demand[0].memory_bytes < 16 * GIB


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
    assert world.settle().look_again_in == pytest.approx(30.0)
    world.wait(30)
    world.settle()
    assert world.pod_names() == []
    assert world.jobs == {}
    assert world.reason("Running") == "GangNotBound"
    assert "Insufficient cpu" in world.message("Running")


def test_a_profile_job_without_a_pod_says_where_to_look() -> None:
    world = granted()
    world.pods.clear()
    assert world.settle().look_again_in == pytest.approx(10.0)
    world.wait(10)
    assert world.settle().look_again_in == pytest.approx(20.0)
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


def test_a_suspended_series_stops_after_its_point() -> None:
    world = granted()
    world.edit(lambda spec: spec.update(suspend=True))
    world.settle()
    world.bind()
    world.start()
    world.exit("job-1-12000-x", 0, measured(9.0))
    world.finish_job("job-1-12000")
    world.settle()
    assert world.status.phase == "Suspended"
    assert world.status.profile is not None
    assert len(world.status.profile.points) == 1


def test_a_new_command_is_measured_anew() -> None:
    world = granted()
    run_point(world, knee)
    world.edit(lambda spec: spec["template"]["spec"]["containers"][0].update(command=["other"]))
    world.settle()
    world.reap()
    world.settle()
    assert world.reason("Running") == "WaitingForProfile"
    assert world.status.profile is not None
    assert world.status.profile.points == []
    assert world.status.profile.request is not None


def test_a_spec_that_is_no_longer_valid_ends_the_series() -> None:
    world = granted()
    world.nodes.clear()
    world.settle()
    world.reap()
    world.settle()
    assert world.status.phase == "Pending"
    assert world.reason("Valid") == "NoGPUNodes"
    assert world.jobs == {}


def test_a_finished_profile_is_published_for_identical_jobs() -> None:
    world = granted()
    while world.status.phase == "Profiling":
        run_point(world, knee)
    assert world.status.profile is not None
    ((known,),) = world.profiles.values()
    published = known.spec
    assert published is not None
    assert known.name == published.fingerprint == world.status.profile.fingerprint
    assert published.command == ["python3", "train.py", "--fast"]
    assert published.matrices == world.status.profile.matrices
    other = World(name="twin", profile=AUTO)
    other.profiles = world.profiles
    other.settle()
    assert other.status.phase == "Queued"
    assert other.reason("Profiled") == "ProfileKnown"
    assert other.status.profile is not None
    assert other.status.profile.demand == world.status.profile.demand


def test_a_profile_that_becomes_known_meanwhile_ends_the_series() -> None:
    world = granted()
    assert world.status.profile is not None
    mark = world.status.profile.fingerprint
    matrix = SensitivityMatrix(
        gpu_type="V100", cpu_millis=[1000, 3000], memory_bytes=[GIB], steps_per_second=[[1.0], [3.0]]
    )
    spec = ThroughputProfileSpec(
        fingerprint=mark, image="example/train:1", gpus=1, matrices=[matrix], measured_at=format_time(START)
    )
    world.profiles = {mark: (KnownProfile(mark, "1", spec),)}
    world.settle()
    world.reap()
    world.settle()
    assert world.status.phase == "Queued"
    assert world.jobs == {}
    assert world.status.profile is not None
    assert world.status.profile.demand[0].cpu_millis == 3000


def test_no_open_node_of_an_allowed_type_leaves_the_job_pending_with_a_reason() -> None:
    world = World([node("n1", ready=False)], profile=AUTO, gpuTypes=["V100"])
    world.settle()
    assert world.status.phase == "Pending"
    assert world.reason("Profiled") == "NoNodeToProfile"
    world.nodes["n1"] = node("n1")
    world.settle()
    assert world.status.phase == "Profiling"


def test_the_policy_bounds_multiple_and_points() -> None:
    world = World(profile=AUTO)
    world.profiling = Profiling(max_cpu_multiple=2, max_points=2)
    world.settle()
    give_place(world)
    world.settle()
    points = []
    while world.status.phase == "Profiling":
        points.append(run_point(world, knee))
    assert points[0] == 6000
    assert len(points) == 2


def test_provided_matrices_are_used_as_they_are() -> None:
    matrix = {"gpuType": "V100", "cpuMillis": [1000, 2000], "memoryBytes": [GIB], "stepsPerSecond": [[1.0], [1.02]]}
    world = World(profile={"mode": "Provided", "matrices": [matrix]})
    world.settle()
    assert world.status.phase == "Queued"
    assert world.status.profile is not None
    assert world.status.profile.matrices[0].to_wire() == matrix
    assert world.status.profile.demand[0].cpu_millis == 1000
    assert "ProfileProvided" in world.posted()


def test_a_cpu_step_of_the_user_is_kept_to_unless_the_matrix_would_be_too_long() -> None:
    world = granted(profile={"mode": "Auto", "cpuStep": "10m"})
    while world.status.phase == "Profiling":
        run_point(world, knee)
    assert world.status.profile is not None
    assert len(world.status.profile.matrices[0].cpu_millis) <= 64


SIDE = {"name": "side", "image": "i", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
TRAIN = {"name": "train", "image": "i", "command": ["c"]}


def test_sidecars_are_measured_with_the_job_and_end_with_the_measurement() -> None:
    world = granted(template={"spec": {"containers": [TRAIN, SIDE]}})
    container = world.jobs["job-1-12000"]["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"]["cpu"] == "11"
    world.bind()
    world.start()
    world.exit("job-1-12000-x", 0, measured(9.0))
    world.settle()
    assert "job-1-12000" not in world.jobs
    assert world.status.profile is not None
    assert world.status.profile.points[0].cpu_millis == 12000
    assert world.status.profile.points[0].memory_bytes == 8 * GIB
    world.pods.clear()
    world.settle()
    assert len(world.jobs) == 1, "the next point follows once the pod is gone"


def test_a_point_that_fails_beside_sidecars_is_not_tried_for_ever() -> None:
    world = granted(template={"spec": {"containers": [TRAIN, SIDE]}})
    world.bind()
    world.start()
    world.exit("job-1-12000-x", 1, failed("Crashed", "exit code 1"))
    world.settle()
    world.pods.clear()
    world.settle()
    assert world.status.phase == "Failed"
    assert world.reason("Profiled") == "ProfileCrashed"


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
