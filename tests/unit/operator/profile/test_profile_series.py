"""Profile series: how the points come about, and what ends a series."""

import pytest

from support.operator.objects import GIB, START, node
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
from synergy_api.parts.profile import SensitivityMatrix
from synergy_api.resources.scheduling_policy import Profiling
from synergy_api.resources.throughput_profile import ThroughputProfileSpec
from synergy_api.timestamps import format_time
from synergy_operator.actions import CreateJob
from synergy_operator.views.known_profile import KnownProfile


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
    assert world.settle().requeue_after == pytest.approx(20.0)
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
    assert world.reason("Profiled") == "ProfileProvided"
    assert world.posted() == [], "the spec says it"


def test_a_cpu_step_of_the_user_is_kept_to_unless_the_matrix_would_be_too_long() -> None:
    world = granted(profile={"mode": "Auto", "cpuStep": "10m"})
    while world.status.phase == "Profiling":
        run_point(world, knee)
    assert world.status.profile is not None
    assert len(world.status.profile.matrices[0].cpu_millis) <= 64


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
