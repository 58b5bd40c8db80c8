"""GPU counters of profile runs: which run reads them, where, and what the profile says of them."""

from dataclasses import replace
from typing import Any

import pytest

from support.operator.profile_world import AUTO, asking, give_place, granted, knee, run_point
from support.operator.world import SETTINGS, World
from synergy_api.parts.profile import ProfilePoint
from synergy_api.parts.usage import MeasuredUsage
from synergy_operator.profile.points import usage_of, with_run
from synergy_operator.profile.result import GpuUse, MeasuredPoint, read_result
from synergy_operator.views.batch_job import Target
from synergy_operator.views.pod import ContainerView

GIB = 1 << 30
COUNTED = {"compute": 0.4, "bandwidth": 0.2, "source": "DCGM", "occupancy": 0.2, "utilization": 0.9}
PLAIN = {"compute": 0.9, "bandwidth": 0.5}


def options(job: dict[str, Any]) -> dict[str, str]:
    words = job["spec"]["template"]["spec"]["containers"][0]["command"]
    return dict(zip(words[3::2], words[4::2], strict=False))


def variables(job: dict[str, Any]) -> dict[str, Any]:
    env = job["spec"]["template"]["spec"]["containers"][0]["env"]
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in env}


def test_the_first_run_with_all_cpu_reads_counters_and_no_other() -> None:
    world = granted()
    asked = []
    while world.status.phase == "Profiling" and not all(job["status"] for job in world.jobs.values()):
        (job,) = [job for job in world.jobs.values() if not job["status"]]
        asked.append((job["metadata"]["name"], options(job)["--counters"]))
        run_point(world, knee)
    assert asked[0] == ("job-1-12000", "Auto")
    assert {counters for _, counters in asked[1:]} == {"Off"}
    assert len(asked) > 2


@pytest.mark.parametrize(
    ("counters", "gpus", "seconds"),
    [("Auto", 1, 1200), ("Nsight", 1, 1800), ("Off", 1, 1200), ("Auto", 4, 1800), ("Nsight", 4, 2400)],
)
def test_each_further_run_of_the_command_has_time_of_its_own(counters: str, gpus: int, seconds: int) -> None:
    (job,) = granted(profile={**AUTO, "counters": counters}, gpus=gpus).jobs.values()
    assert options(job)["--counters"] == counters
    assert job["spec"]["activeDeadlineSeconds"] == seconds
    assert "SYNERGY_DCGM_URL" not in variables(job)


def test_a_profile_with_kernels_is_none_without_and_other_profiles_keep_their_names() -> None:
    def name(**profile: Any) -> str:
        status = asking(profile={**AUTO, **profile}).status.profile
        assert status is not None
        return status.fingerprint

    assert name() == name(counters="Off") != name(counters="Nsight")


def test_the_run_reads_the_exporter_of_its_node() -> None:
    world = World(profile=AUTO)
    world.settings = replace(SETTINGS, dcgm_url="http://{hostIP}:9400/metrics", dcgm_interval_seconds=1.0)
    world.settle()
    give_place(world)
    world.settle()
    (job,) = world.jobs.values()
    env = job["spec"]["template"]["spec"]["containers"][0]["env"]
    names = [entry["name"] for entry in env]
    found = variables(job)
    assert found["SYNERGY_HOST_IP"] == {"fieldRef": {"fieldPath": "status.hostIP"}}
    assert found["SYNERGY_DCGM_URL"] == "http://$(SYNERGY_HOST_IP):9400/metrics"
    assert found["SYNERGY_DCGM_INTERVAL_S"] == "1"
    assert names.index("SYNERGY_HOST_IP") < names.index("SYNERGY_DCGM_URL"), "the kubelet replaces earlier names only"


def test_what_the_harness_tells_of_counters_is_read() -> None:
    said = '{"outcome": "measured", "steps_per_second": 2.0, "gpu": %s}'
    good = '{"compute": 0.4, "bandwidth": 0.2, "memory_bytes": 7, "source": "NVML-GPM", "occupancy": 0.1}'
    known = GpuUse(0.4, 0.2, 7, source="NVML-GPM", occupancy=0.1)
    assert read_result(ContainerView(message=said % good)) == MeasuredPoint(2.0, 0.0, 0, gpu=known)
    for bad in (good.replace("NVML-GPM", "a guess"), good.replace("0.1}", "1.1}")):
        assert read_result(ContainerView(message=said % bad)) == MeasuredPoint(2.0, 0.0, 0, gpu=None)


def runs(*uses: GpuUse | None) -> ProfilePoint:
    found: list[ProfilePoint] = []
    for number, use in enumerate(uses):
        result = MeasuredPoint(2.0, 0.01, 0, gpu=use)
        how: dict[str, Any] = {"memory_bytes": GIB, "client_thread_percent": 100, "job": f"j{number}"}
        found = with_run(found, "V100", Target(1000, repeat=number), result, measured_at="", **how)
    return found[0]


def test_runs_of_a_point_are_averaged_by_source_and_counters_outrank_utilisation() -> None:
    counted, other = GpuUse(0.4, 0.2, 5, "DCGM", 0.2, 0.9, 0.5), GpuUse(0.6, 0.4, 9, "DCGM", 0.4, 0.7, 0.3)
    plain = GpuUse(0.9, 0.5, 7, problem="none")
    both = runs(counted, other)
    assert (both.gpu_compute, both.gpu_occupancy, both.gpu_utilization, both.gpu_memory_bytes) == (0.5, 0.3, 0.8, 9)
    for order in ((counted, plain), (plain, counted)):
        point = runs(*order)
        assert (point.gpu_source, point.gpu_compute, point.gpu_memory_bytes) == ("DCGM", 0.4, 7)
        assert point.gpu_problem == ""
    assert runs(counted, None).gpu_compute == 0.4
    assert runs(None, plain).gpu_problem == "none"
    assert runs(None, None).gpu_source is None


def test_a_point_of_an_older_operator_keeps_its_memory_and_its_mean() -> None:
    old = runs(GpuUse(0.8, 0.4, 9)).model_copy(update={"gpu_source": None})
    how: dict[str, Any] = {"memory_bytes": GIB, "client_thread_percent": 100, "job": "next", "measured_at": ""}
    for use, compute in ((GpuUse(0.6, 0.4, 5), 0.7), (GpuUse(0.3, 0.2, 5, "DCGM"), 0.3)):
        found = with_run([old], "V100", Target(1000, repeat=1), MeasuredPoint(2.0, 0.01, 0, gpu=use), **how)[0]
        assert (found.gpu_compute, found.gpu_memory_bytes, found.gpu_source) == (compute, 9, use.source)


def test_the_usage_is_of_the_fastest_point_with_counters() -> None:
    def point(cpu: int, speed: float, **told: Any) -> ProfilePoint:
        fields = {f"gpu_{name}": value for name, value in told.items()}
        return ProfilePoint(gpu_type="V100", cpu_millis=cpu, memory_bytes=1, steps_per_second=speed, **fields)

    plain = point(2000, 5.0, compute=0.9, bandwidth=0.5, memory_bytes=9, source="Utilization", problem="none here")
    slower = point(1000, 4.9, compute=0.4, bandwidth=0.2, memory_bytes=5, source="DCGM", occupancy=0.1, utilization=0.8)
    assert usage_of([plain, slower], "V100") == MeasuredUsage(
        gpu_type="V100", compute=0.4, bandwidth=0.2, memory_bytes=9, source="DCGM", occupancy=0.1, utilization=0.8
    )
    assert usage_of([plain], "V100") == MeasuredUsage(
        gpu_type="V100", compute=0.9, bandwidth=0.5, memory_bytes=9, problem="none here"
    )


@pytest.mark.parametrize(
    ("allowed", "gpu", "reason"),
    [
        (True, {**PLAIN, "problem": "no dcgm-exporter is set"}, "UsageWithoutCounters"),
        (True, PLAIN, "ProfileMeasured"),
        (True, COUNTED, "ProfileMeasured"),
        (False, {**PLAIN, "problem": "no dcgm-exporter is set"}, "ProfileMeasured"),
    ],
)
def test_a_job_that_may_share_is_told_that_its_usage_is_an_upper_bound(
    allowed: bool, gpu: dict[str, Any], reason: str
) -> None:
    world = granted(sharing={"allowed": allowed}, gpus=1)
    while world.status.phase == "Profiling" and not all(job["status"] for job in world.jobs.values()):
        run_point(world, knee, lambda _: {**gpu, "memory_bytes": GIB})
    assert world.reason("Profiled") == reason
    assert (reason == "UsageWithoutCounters") == ("no dcgm-exporter is set" in world.message("Profiled"))
    profile = world.status.profile
    assert profile is not None
    assert [usage.source for usage in profile.usage] == [gpu.get("source", "Utilization")]
