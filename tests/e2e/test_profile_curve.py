"""Optimistic profiling recovers a CPU curve that is known by construction."""

from collections.abc import Awaitable, Callable

import pytest

from support.jobs import reaches, restricted_template, submit
from synergy_kube import KubeClient

pytestmark = pytest.mark.e2e

CPU_MS, DEVICE_MS = 30, 50
"""One step costs 30 ms of CPU and 50 ms of the device: 1000 / 50 steps a second from 600 millis on."""
GRID = range(100, 1001, 100)


def true_speed(cpu_millis: int) -> float:
    return min(1000 / DEVICE_MS, cpu_millis / CPU_MS)


@pytest.mark.timeout(400)
async def test_the_curve_is_within_ten_per_cent_at_every_point_with_half_the_points(
    kube: KubeClient, namespace: str, pools: None, policy: Callable[..., Awaitable[None]]
) -> None:
    await policy(mechanism="tune", roundSeconds=20)
    script = ["python3", "/examples/cpu_hungry.py", "--checkpoint", "/tmp/checkpoint"]
    await submit(
        kube,
        namespace,
        "curve",
        gpus=1,
        steps=20,
        gpuTypes=["A100"],
        profile={"steps": 40, "cpuStep": "100m", "timeoutSeconds": 120},
        resources={"max": {"cpu": "1"}},
        template=restricted_template([*script, "--cpu-ms-per-step", str(CPU_MS), "--device-ms", str(DEVICE_MS)]),
    )
    job = await reaches(kube, namespace, "curve", "Queued", "Starting", "Running", "Succeeded", seconds=300)
    profile = job["status"]["profile"]
    measured = profile["matrices"][0]
    assert measured["cpuMillis"] == list(GRID)
    found = {cpu: row[-1] for cpu, row in zip(measured["cpuMillis"], measured["stepsPerSecond"], strict=True)}
    errors = {cpu: found[cpu] / true_speed(cpu) - 1 for cpu in GRID}
    assert max(abs(error) for error in errors.values()) <= 0.10, errors
    assert len(profile["points"]) <= len(GRID) // 2
    assert 500 <= profile["demand"][0]["cpuMillis"] <= 700
    await reaches(kube, namespace, "curve", "Succeeded", seconds=90)
