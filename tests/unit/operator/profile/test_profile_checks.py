"""What a series measures beside its CPU points: the memory model, noise, and in a sweep everything."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from support.operator.objects import GIB
from support.operator.world import World
from synergy_api.parts.profile import ProfilePoint
from synergy_api.resources.scheduling_policy import Profiling
from synergy_api.resources.training_job import ProfileStatus

DATA = {"dataset": {"bytes": 8 * GIB, "samples": 8192}, "batchSize": 64}
STEP_BYTES = 64 << 20
RSS = 1 << 28
PROCESS = RSS * 110 // 100

Speed = Callable[[int, float | None, int | None], float]
"""Steps a second with so many milli-CPU, such a part of the data in memory, reads held to so many bytes a second."""


def world_of(bandwidth: int | None, mode: str = "Auto", profiling: Profiling | None = None, **spec: Any) -> World:
    """A job on 24-CPU nodes with 8 GPUs, granted what it asks for."""
    world = World(profile={"mode": mode}, **spec)
    if profiling is not None:
        world.profiling = profiling
    pool = {"nodeSelector": {"nvidia.com/gpu.product": "V100"}, "gpuType": "V100"}
    if bandwidth is not None:
        pool["storageBandwidth"] = bandwidth  # type: ignore[assignment]
    world.pools = [{"metadata": {"name": "pool", "resourceVersion": "1"}, "spec": pool}]
    world.settle()
    profile = world.status.profile
    assert profile is not None
    assert profile.request is not None
    request = profile.request
    world.grant(("n1", request.gpus, request.cpu_millis, request.memory_bytes // GIB), purpose="Profile")
    world.settle()
    return world


def env_of(job: dict[str, Any]) -> dict[str, str]:
    container = job["spec"]["template"]["spec"]["containers"][0]
    return {entry["name"]: entry["value"] for entry in container["env"]}


def run_all(world: World, speed: Speed, *, cached: bool = True, error: float = 0.005) -> list[str]:
    """Run every profile Job of the series; their names."""
    names = []
    while world.status.phase == "Profiling":
        name = next(name for name in sorted(world.jobs) if not world.jobs[name]["status"])
        names.append(name)
        env = env_of(world.jobs[name])
        cpu = int(world.jobs[name]["metadata"]["annotations"]["kube-synergy.dev/cpu-millis"])
        rate, pace = env.get("SYNERGY_PROFILE_HIT_RATE"), env.get("SYNERGY_STORAGE_BYTES_PER_S")
        found = speed(cpu, None if rate is None else float(rate), None if pace is None else int(pace))
        end(world, name, message(found, cached=cached, error=error) if found else failed())
    return names


def end(world: World, name: str, text: str) -> None:
    world.bind(f"{name}-x")
    world.start(f"{name}-x")
    world.settle()
    world.wait(7)
    world.exit(f"{name}-x", 0, text)
    world.finish_job(name)
    world.settle()


def message(speed: float, *, cached: bool = True, error: float = 0.005, **more: int) -> str:
    measured = {"outcome": "measured", "steps_per_second": speed, "relative_error": error}
    return json.dumps({**measured, "max_rss_bytes": RSS, "cached": cached, **more})


def failed() -> str:
    return json.dumps({"outcome": "failed", "reason": "Timeout", "message": "too slow"})


def storage_bound(bandwidth: float) -> Speed:
    """A job as the model has it: 4.5 CPUs saturate it at 9 steps a second, storage gives the pod so much."""

    def speed(cpu: int, rate: float | None, pace: int | None) -> float:
        missed = STEP_BYTES * (1.0 - rate) if rate is not None else 0.0
        most = min(bandwidth, pace or bandwidth) / missed if missed else float("inf")
        return min(9.0, cpu / 500, most)

    return speed


def profile_of(world: World) -> ProfileStatus:
    assert world.status.profile is not None
    return world.status.profile


def checks(world: World) -> list[ProfilePoint]:
    return [point for point in profile_of(world).points if point.hit_rate is not None]


# the memory model


def test_a_job_with_a_cache_is_measured_at_one_point_with_less_memory() -> None:
    world = world_of(8 * (200 << 20), **DATA)
    names = run_all(world, storage_bound(1 << 40))
    (check,) = checks(world)
    assert names.count(check.job) == 1
    assert check.cpu_millis == 12000
    assert check.storage_bytes_per_second == 200 << 20
    assert 0 < (check.hit_rate or 0) < 1
    assert check.memory_bytes == PROCESS + round((check.hit_rate or 0) * 8 * GIB)
    assert 4.5 < check.steps_per_second < 7.65, "storage slows it there to some two thirds"
    assert check.predicted_steps_per_second == pytest.approx(check.steps_per_second, rel=0.001)
    (known,) = profile_of(world).confidence
    assert (known.gpu_type, known.level, known.memory_points) == ("V100", "High", 1)
    assert known.memory_error == pytest.approx(0.0, abs=0.001)
    assert known.storage_bytes_per_second == 200 << 20
    assert world.reason("Profiled") == "ProfileMeasured"
    assert world.message("Profiled").startswith(f"{len(names) - 1} CPU points")


def test_the_check_leaves_the_cpu_points_and_the_matrix_as_they_are() -> None:
    plain = world_of(8 * (200 << 20), profiling=Profiling(check_memory_model=False), **DATA)
    checked = world_of(8 * (200 << 20), **DATA)
    run_all(plain, storage_bound(1 << 40))
    run_all(checked, storage_bound(1 << 40))
    assert checks(plain) == []
    assert profile_of(plain).matrices == profile_of(checked).matrices
    assert profile_of(plain).confidence[0].memory_error is None


def test_a_model_that_is_off_is_told() -> None:
    """Storage gives half of what the pool says."""
    world = world_of(8 * (200 << 20), **DATA)
    run_all(world, storage_bound(100 << 20))
    (known,) = profile_of(world).confidence
    assert known.memory_error == pytest.approx(1.0, rel=0.01)
    assert known.level == "Low"
    assert world.status.phase == "Queued"
    assert world.reason("Profiled") == "ProfileMemoryOff"
    assert "100% off" in world.message("Profiled")
    assert "storageBandwidth" in world.message("Profiled")
    assert "ProfileMemoryOff" in world.posted()


@pytest.mark.parametrize(("spec", "cached"), [(DATA, False), ({"dataset": DATA["dataset"]}, True), ({}, True)])
def test_where_there_is_no_cache_or_no_model_nothing_is_checked(spec: dict[str, Any], cached: bool) -> None:
    world = world_of(8 * (200 << 20), **spec)
    run_all(world, storage_bound(1 << 40), cached=cached)
    assert checks(world) == []
    assert profile_of(world).confidence[0].memory_points == 0


def test_where_the_bandwidth_is_not_known_it_is_measured() -> None:
    """The pod has one of the node's eight GPUs: it may count on an eighth of what it sees when it is alone."""
    world = world_of(None, resources={"max": {"memory": "12Gi"}}, **DATA)
    run_all(world, storage_bound(512 << 20))
    cold, check = checks(world)
    assert (cold.hit_rate, cold.storage_bytes_per_second) == (0.0, None)
    assert cold.steps_per_second == pytest.approx(8.0)
    assert check.storage_bytes_per_second == 64 << 20
    (known,) = profile_of(world).confidence
    assert known.storage_bytes_per_second == 64 << 20
    assert (known.memory_points, known.memory_error) == (1, pytest.approx(0.0, abs=0.001))
    (matrix,) = profile_of(world).matrices
    assert matrix.memory_bytes[0] == PROCESS
    assert matrix.memory_bytes[-1] == 12 * GIB
    assert matrix.steps_per_second[-1][0] == pytest.approx(1.0), "64 MiB a step at 64 MiB/s"
    assert matrix.steps_per_second[-1][-1] == pytest.approx(9.0)


def test_storage_that_never_slows_the_job_shows_in_one_run() -> None:
    world = world_of(None, **{**DATA, "gpus": 8})
    run_all(world, lambda cpu, _rate, _pace: min(9.0, cpu / 500))
    assert [point.hit_rate for point in checks(world)] == [0.0]
    assert profile_of(world).confidence[0].memory_points == 0
    (matrix,) = profile_of(world).matrices
    assert len(set(matrix.steps_per_second[-1])) == 1, "memory does not matter"


@pytest.mark.parametrize("bandwidth", [8 * (200 << 20), None])
def test_a_check_that_comes_to_nothing_is_left_out(bandwidth: int | None) -> None:
    world = world_of(bandwidth, **DATA)
    names = run_all(world, lambda cpu, rate, _pace: 0.0 if rate is not None else min(9.0, cpu / 500))
    assert sum("h" in name[4:] or "c" in name[4:] for name in names) == 1, "it is tried once"
    assert world.status.phase == "Queued"
    assert checks(world) == []
    assert profile_of(world).unchecked == ["V100"]
    assert profile_of(world).confidence[0].memory_error is None
    assert world.reason("Profiled") == "ProfileMemoryUnchecked"
    assert "ProfileMemoryUnchecked" in world.posted()


def test_a_check_that_fails_beside_sidecars_is_not_tried_for_ever() -> None:
    """Their pod is kept by the sidecar, and its Job deleted with the proof."""
    beside = {"name": "logs", "image": "logs:1", "resources": {"requests": {"memory": "1Gi", "cpu": "100m"}}}
    train = {"name": "train", "image": "example/train:1", "command": ["python3", "train.py"]}
    world = world_of(8 * (200 << 20), template={"spec": {"containers": [train, beside]}}, **DATA)
    made: list[str] = []
    while world.status.phase == "Profiling":
        name = next(iter(sorted(world.jobs.keys() - made)))
        made.append(name)
        rate = env_of(world.jobs[name]).get("SYNERGY_PROFILE_HIT_RATE")
        pod = f"{name}-x"
        world.bind(pod)
        world.start(pod)
        world.settle()
        world.exit(pod, 0, message(9.0) if rate is None else failed())
        world.pods[pod]["status"]["phase"] = "Running"
        world.settle()
        world.pods.pop(pod, None)
        world.settle()
    assert sum("h" in name[4:] for name in made) == 1
    assert profile_of(world).unchecked == ["V100"]


# noise


def test_intervals_stand_beside_the_points() -> None:
    world = world_of(None)
    run_all(world, storage_bound(1), error=0.01)
    for point in profile_of(world).points:
        assert point.low_steps_per_second == pytest.approx(point.steps_per_second * (1 - 0.02262), rel=1e-3)
        assert point.high_steps_per_second == pytest.approx(point.steps_per_second * (1 + 0.02262), rel=1e-3)
        assert [run.job for run in point.runs] == [point.job]
    (known,) = profile_of(world).confidence
    assert known.uncertainty == pytest.approx(0.02262, rel=1e-3)
    assert known.runs == len(profile_of(world).points)
    assert known.run_to_run is None
    assert known.level == "High"


def test_noisy_points_are_measured_again_and_the_mean_counts() -> None:
    world = world_of(None, profiling=Profiling(max_repeats=3))
    names = run_all(world, storage_bound(1), error=0.08)
    repeated = [name for name in names if "r" in name[3:]]
    assert len(repeated) == 3
    assert len(names) == len(set(names))
    points = profile_of(world).points
    assert sum(len(point.runs) for point in points) == len(names) == profile_of(world).confidence[0].runs
    twice = next(point for point in points if len(point.runs) == 2)
    assert twice.relative_error == pytest.approx(0.08 / 2**0.5, rel=0.01)
    assert world.posted().count("PointMeasured") == len(names)


def test_the_policy_asks_for_several_runs_of_each_point() -> None:
    world = world_of(None, profiling=Profiling(runs_per_point=2, max_repeats=0))
    drift = iter(range(100))
    run_all(world, lambda cpu, _rate, _pace: min(9.0, cpu / 500) * (1.01 if next(drift) % 2 else 0.99))
    points = profile_of(world).points
    assert {len(point.runs) for point in points} == {2}
    (known,) = profile_of(world).confidence
    assert known.run_to_run is not None
    assert known.runs == 2 * len(points)
    for point in points:
        speeds = [run.steps_per_second for run in point.runs]
        assert point.steps_per_second == pytest.approx(sum(speeds) / 2, rel=1e-5)


def test_a_profile_that_is_too_noisy_says_so_and_the_job_is_queued() -> None:
    world = world_of(None, profiling=Profiling(max_repeats=1))
    run_all(world, storage_bound(1), error=0.2)
    (known,) = profile_of(world).confidence
    assert known.level == "Low"
    assert known.uncertainty > 0.25
    assert world.status.phase == "Queued"
    assert world.reason("Profiled") == "ProfileUncertain"
    assert "known to 45% only" in world.message("Profiled")
    assert "ProfileUncertain" in world.posted()


def test_identical_jobs_hear_of_the_noise_too() -> None:
    world = world_of(None, profiling=Profiling(max_repeats=1))
    run_all(world, storage_bound(1), error=0.2)
    twin = World(profile={"mode": "Auto"})
    twin.profiles = world.profiles
    twin.settle()
    assert profile_of(twin).points == []
    assert profile_of(twin).confidence == profile_of(world).confidence
    assert twin.reason("Profiled") == "ProfileUncertain"


def test_a_series_goes_on_with_its_repeats_after_it_lost_its_place() -> None:
    world = world_of(None, profiling=Profiling(runs_per_point=2, max_repeats=0))
    while not any("r" in name[3:] for name in world.jobs):
        name = next(name for name in sorted(world.jobs) if not world.jobs[name]["status"])
        end(world, name, message(storage_bound(1)(int(name.split("-")[2]), None, None)))
    world.revoke(lease_in=0)
    world.settle()
    world.reap()
    world.settle()
    request = profile_of(world).request
    assert request is not None
    world.grant(("n1", request.gpus, request.cpu_millis, request.memory_bytes // GIB), purpose="Profile")
    world.settle()
    run_all(world, storage_bound(1))
    assert {len(point.runs) for point in profile_of(world).points} == {2}


# sweeps


def test_a_sweep_measures_every_point_and_the_model_is_compared_at_each() -> None:
    world = world_of(8 * (200 << 20), mode="Sweep", **DATA)
    names = run_all(world, storage_bound(1 << 40))
    cpu_points = [point for point in profile_of(world).points if point.hit_rate is None]
    assert [point.cpu_millis for point in cpu_points] == list(range(12000, 0, -1000))
    assert len(checks(world)) == 3 * 12
    assert len(names) == 48
    (known,) = profile_of(world).confidence
    assert known.memory_points == 36
    assert known.memory_error == pytest.approx(0.0, abs=0.001)
    for point in checks(world):
        assert point.predicted_steps_per_second == pytest.approx(point.steps_per_second, rel=0.001)


def test_a_sweep_s_matrix_is_that_of_the_search_where_the_curve_has_one_knee() -> None:
    swept, searched = (world_of(8 * (200 << 20), mode=mode, **DATA) for mode in ("Sweep", "Auto"))
    run_all(swept, storage_bound(1 << 40))
    run_all(searched, storage_bound(1 << 40))
    (all_points,), (few_points,) = profile_of(swept).matrices, profile_of(searched).matrices
    assert all_points.memory_bytes == few_points.memory_bytes
    for full, found in zip(all_points.steps_per_second, few_points.steps_per_second, strict=True):
        assert found == pytest.approx(full, rel=0.1)


@pytest.mark.parametrize(("spec", "most", "columns"), [(DATA, 16, 4), ({}, 6, 1)])
def test_a_sweep_keeps_to_its_bound(spec: dict[str, Any], most: int, columns: int) -> None:
    world = world_of(8 * (200 << 20), mode="Sweep", profiling=Profiling(max_sweep_points=most), **spec)
    names = run_all(world, storage_bound(1 << 40))
    assert len(names) == most
    cpu_points = {point.cpu_millis for point in profile_of(world).points}
    assert len(cpu_points) == most // columns
    assert {1000, 12000} <= cpu_points


# the demand vector


@pytest.mark.parametrize(("tolerance", "cpu"), [(0, 9000), (5, 9000), (30, 7000)])
def test_the_demand_is_what_the_tolerance_allows(tolerance: int, cpu: int) -> None:
    world = world_of(None, profiling=Profiling(demand_tolerance_percent=tolerance))
    run_all(world, lambda cpu, _rate, _pace: min(9.0, cpu / 1000))
    assert profile_of(world).demand[0].cpu_millis == cpu


def test_data_that_nobody_could_read_in_a_life_still_make_a_matrix() -> None:
    last = 2**63 - 1
    world = world_of(1, dataset={"bytes": last, "samples": 1}, batchSize=last)
    run_all(world, lambda cpu, hit_rate, pace: 2.0)
    assert world.status.phase == "Queued"
    assert world.status.profile is not None
    (matrix,) = world.status.profile.matrices
    speeds = [speed for row in matrix.steps_per_second for speed in row]
    assert min(speeds) == 2e-6
    assert all(speed <= 2.0 for speed in speeds)


def test_a_speed_without_cache_that_no_storage_allows_is_no_bandwidth() -> None:
    last = 2**63 - 1
    world = world_of(None, dataset={"bytes": last, "samples": 1}, batchSize=last)
    run_all(world, lambda cpu, hit_rate, pace: 2.0)
    assert world.status.phase == "Queued"
    assert profile_of(world).confidence[0].storage_bytes_per_second == 1 << 50
