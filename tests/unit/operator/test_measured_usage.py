"""What profile runs tell of a job's GPU: kept with the profile, for identical jobs too, and held against the spec."""

import json
from typing import Any

import pytest

from support.operator_world import World
from support.profile_world import AUTO, asking, granted, knee, run_point
from synergy_api.profile import MeasuredUsage, ProfilePoint
from synergy_operator.profile_points import usage_of
from synergy_operator.profile_result import GpuUse, Measurement, read_result
from synergy_operator.views import ContainerView

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
    assert read_result(ContainerView(message=message)) == Measurement(2.0, 0.0, 0, gpu=known)


def test_the_usage_is_that_of_the_fastest_point_and_of_memory_the_most() -> None:
    def point(cpu: int, speed: float, compute: float | None, memory: int) -> ProfilePoint:
        told = {} if compute is None else {"gpu_compute": compute, "gpu_bandwidth": 0.1, "gpu_memory_bytes": memory}
        return ProfilePoint(gpu_type="V100", cpu_millis=cpu, memory_bytes=1, steps_per_second=speed, **told)

    points = [point(1000, 2.0, 0.2, 9), point(2000, 4.0, 0.4, 5), point(3000, 5.0, None, 0)]
    assert usage_of(points, "V100") == MeasuredUsage(gpu_type="V100", compute=0.4, bandwidth=0.1, memory_bytes=9)
    assert usage_of(points, "T4") is None
    assert usage_of(points[2:], "V100") is None


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
