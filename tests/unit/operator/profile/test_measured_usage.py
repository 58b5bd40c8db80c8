"""What profile runs tell of a job's GPU: kept with the profile, for identical jobs too, and held against the spec."""

import json
from typing import Any

import pytest

from support.operator.objects import node
from support.operator.profile_world import AUTO, asking, granted, knee, run_point
from support.operator.world import World
from synergy_api.parts.profile import ProfilePoint
from synergy_api.parts.usage import MeasuredUsage
from synergy_operator.profile.points import threads_of, usage_of, with_run
from synergy_operator.profile.result import GpuUse, MeasuredPoint, read_result
from synergy_operator.views.batch_job import Target
from synergy_operator.views.pod import ContainerView

GIB = 1 << 30


def gpu(point: int) -> dict[str, Any]:
    """The GPU waits for the CPU below 4.5 of them; its memory is the same."""
    return {"compute": round(0.6 * min(1.0, point / 4500), 4), "bandwidth": 0.2, "memory_bytes": 3 * GIB}


def measured_world(**spec: Any) -> World:
    world = granted(**spec)
    while world.status.phase == "Profiling" and not all(job["status"] for job in world.jobs.values()):
        run_point(world, knee, gpu)
    return world


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ({"compute": 0.5, "bandwidth": 0.25, "memory_bytes": 7}, GpuUse(0.5, 0.25, 7)),
        ({"compute": 1.5, "bandwidth": 0.25, "memory_bytes": 7}, None),
        ({"compute": 0.5, "memory_bytes": 7}, None),
        ({"compute": 0.5, "bandwidth": 0.25, "memory_bytes": 1 << 70}, None),
        ("much", None),
        (None, None),
    ],
)
def test_usage_that_makes_no_sense_is_ignored_and_the_point_counts(said: object, known: GpuUse | None) -> None:
    message = json.dumps({"outcome": "measured", "steps_per_second": 2.0, "gpu": said})
    assert read_result(ContainerView(message=message)) == MeasuredPoint(2.0, 0.0, 0, gpu=known)


def test_the_usage_is_that_of_the_fastest_point_and_of_memory_the_most() -> None:
    def point(cpu: int, speed: float, compute: float | None, memory: int) -> ProfilePoint:
        told = {} if compute is None else {"gpu_compute": compute, "gpu_bandwidth": 0.1, "gpu_memory_bytes": memory}
        return ProfilePoint(gpu_type="V100", cpu_millis=cpu, memory_bytes=1, steps_per_second=speed, **told)

    points = [point(1000, 2.0, 0.2, 9), point(2000, 4.0, 0.4, 5), point(3000, 5.0, None, 0)]
    assert usage_of(points, "V100") == MeasuredUsage(gpu_type="V100", compute=0.4, bandwidth=0.1, memory_bytes=9)
    assert usage_of(points, "T4") is None
    assert usage_of(points[2:], "V100") is None


def test_the_limit_in_a_matrix_is_that_of_the_fastest_point_and_in_a_point_the_tightest_of_its_runs() -> None:
    def series(*percents: int) -> list[ProfilePoint]:
        found: list[ProfilePoint] = []
        for number, (cpu, percent) in enumerate(zip((1000, 2000, 2000), percents, strict=True)):
            target, result = Target(cpu, repeat=number == 2), MeasuredPoint(cpu / 1000, 0.01, 0)
            how = {"memory_bytes": GIB, "client_thread_percent": percent, "job": f"j{number}", "measured_at": ""}
            found = with_run(found, "V100", target, result, **how)  # type: ignore[arg-type]
        return found

    for percents, each, whole in (
        ((100, 100, 100), [None, None], None),
        ((50, 100, 100), [50, None], None),
        ((100, 50, 100), [None, 50], 50),
        ((50, 50, 33), [50, 33], 33),
    ):
        points = series(*percents)
        assert [point.client_thread_percent for point in points] == each
        assert threads_of(points, "V100") == whole
        assert threads_of(points, "T4") is None


@pytest.mark.parametrize(("strategy", "percent"), [("mps", 50), ("time-slicing", None)])
def test_a_profile_that_was_measured_on_shared_gpus_says_what_it_had_of_their_threads(
    strategy: str, percent: int | None
) -> None:
    nodes = [node(name, gpus=1) for name in ("n1", "n2")]
    for one in nodes:
        one["metadata"]["labels"] |= {"nvidia.com/gpu.replicas": "2", "nvidia.com/gpu.sharing-strategy": strategy}
        one["status"]["allocatable"]["nvidia.com/gpu"] = "2"
    world = measured_world(nodes=nodes)
    profile = world.status.profile
    assert profile is not None
    assert [matrix.client_thread_percent for matrix in profile.matrices] == [percent]
    assert {point.client_thread_percent for point in profile.points} == {percent}
    twin = World(nodes=nodes, profile=AUTO)
    twin.profiles = world.profiles
    twin.settle()
    assert twin.status.profile is not None
    assert [matrix.client_thread_percent for matrix in twin.status.profile.matrices] == [percent], "published"


def test_a_measured_job_s_usage_stands_in_its_status_and_is_published_for_identical_jobs() -> None:
    world = measured_world()
    profile = world.status.profile
    assert profile is not None
    expected = [MeasuredUsage(gpu_type="V100", compute=0.6, bandwidth=0.2, memory_bytes=3 * GIB)]
    assert profile.usage == expected
    twin = World(profile=AUTO)
    twin.profiles = world.profiles
    twin.settle()
    assert twin.status.profile is not None
    assert (twin.status.profile.usage, twin.status.profile.points) == (expected, [])


def test_a_job_that_takes_more_gpu_memory_than_it_says_is_found_out() -> None:
    def told(memory: str) -> dict[str, Any]:
        usage = {"gpuType": "V100", "compute": 0.6, "bandwidth": 0.2, "memory": memory}
        return {"sharing": {"allowed": True, "usage": [usage]}}

    honest, liar = measured_world(**told("3Gi")), measured_world(**told("1Gi"))
    assert honest.reason("Profiled") == "ProfileMeasured"
    assert liar.reason("Profiled") == "UsageUnderstated"
    assert "UsageUnderstated" in liar.posted()
    assert liar.status.phase == "Queued", "it is no reason not to train it"
    assert asking().status.profile is not None
