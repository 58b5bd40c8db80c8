"""What a command does to its GPUs, sampled through nvidia-smi: here the devcluster's, which speaks as the real one."""

import os
import stat
import sys
import time
from pathlib import Path

import pytest

from support.job.harness import Harness
from support.job.process import wait_until
from synergy_devcluster.gpu_plugin.devices import prepare
from synergy_profiler.gpu_usage import EVERY_MS, GpuSampler, GpuUsage, parse_sample

EXAMPLES = Path(__file__).parents[3] / "examples"
GPU = "GPU-11111111-2222-3333-4444-555555555555"
MIB = 1 << 20
QUICK = ("--warmup-steps", "2", "--steps", "20", "--min-seconds", "1.5", "--grace", "2")
TRAIN = f"""
    import sys, synergy_job
    sys.path.insert(0, {str(EXAMPLES)!r})
    from fake_device import FakeDevice
    from fake_mps import Client
    with Client(0.6, 3000, bandwidth=0.4) as client:
        device = FakeDevice(0.03, client)
        for _ in synergy_job.iterate([1, 2, 3]):
            device.launch()
"""
"""On a device that is always busy: it computes 0.6 of the time and moves memory 0.4 of it."""


@pytest.fixture
def container(tmp_path: Path) -> dict[str, str]:
    """What a container of one fake GPU, which nobody shares, finds in its environment."""
    prepare(tmp_path, [GPU, "GPU-other"])
    path = f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"PATH": path, "NVIDIA_VISIBLE_DEVICES": GPU, "FAKE_GPU_CLIENTS": str(tmp_path)}


def program(folder: Path, script: str) -> dict[str, str]:
    """An environment with this for nvidia-smi."""
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{folder}:{os.environ['PATH']}", "NVIDIA_VISIBLE_DEVICES": GPU}


def sampled(environ: dict[str, str], lines: int) -> GpuUsage | None:
    """What is known after so many lines."""
    begin = time.monotonic()
    sampler = GpuSampler(environ)
    try:
        wait_until(lambda: len(sampler._samples) >= lines, "samples")
    finally:
        sampler.stop()
    return sampler.usage(begin, time.monotonic())


def test_a_profile_run_tells_what_the_command_does_to_its_gpu(harness: Harness, container: dict[str, str]) -> None:
    run = harness.run(TRAIN, *QUICK, **container)
    assert run.result["outcome"] == "measured"
    told = run.result["gpu"]
    assert told["memory_bytes"] == 3000 * MIB
    # busy but for what a busy machine keeps the process from launching
    assert 0.3 < told["compute"] <= 0.6
    assert told["bandwidth"] == pytest.approx(told["compute"] * 0.4 / 0.6, abs=0.02)


def test_of_a_gpu_without_a_client_nothing_is_told(harness: Harness, container: dict[str, str]) -> None:
    silent = TRAIN.replace("Client(0.6, 3000, bandwidth=0.4)", "Client(0.6, environ={})")
    run = harness.run(silent, *QUICK, **container)
    assert run.result["outcome"] == "measured"
    assert "gpu" not in run.result


def test_the_mean_of_all_own_gpus_and_the_most_memory_of_one(tmp_path: Path) -> None:
    ours = program(tmp_path, f"echo '{GPU}, 50, 20, 1000'; echo 'GPU-2, 100, 40, 3000'; echo 'GPU-3, 90, 90, 9000'")
    found = sampled({**ours, "NVIDIA_VISIBLE_DEVICES": f"{GPU},GPU-2"}, 2)
    assert found == GpuUsage(pytest.approx(0.75), pytest.approx(0.3), 3000 * MIB)
    everything = sampled({**ours, "NVIDIA_VISIBLE_DEVICES": "all"}, 3)
    assert everything is not None
    assert everything.memory_bytes == 9000 * MIB


def test_only_the_measured_time_counts() -> None:
    sampler = GpuSampler({"PATH": ""})
    sampler._samples = [
        s for at, util in ((1.0, 10), (5.0, 50), (9.0, 90)) if (s := parse_sample(f"g, {util}, 0, 1", at))
    ]
    assert sampler.usage(4.0, 8.0 + EVERY_MS / 2000) == GpuUsage(0.5, 0.0, MIB)
    assert sampler.usage(20.0, 30.0) is None


@pytest.mark.parametrize("script", ["exit 9", "echo NVIDIA-SMI has failed", "printf 'GPU-1, [N/A], [N/A], 5\\n'"])
def test_where_nvidia_smi_tells_nothing_nothing_is_known(tmp_path: Path, script: str) -> None:
    sampler = GpuSampler(program(tmp_path, script))
    wait_until(lambda: not sampler._reader.is_alive(), "the end of what it prints")
    sampler.stop()
    assert sampler.usage(0.0, time.monotonic()) is None


def test_without_nvidia_smi_nothing_is_known(tmp_path: Path) -> None:
    for environ in ({"PATH": str(tmp_path)}, program(tmp_path, "") | {"PATH": str(tmp_path / "nowhere")}):
        sampler = GpuSampler(environ)
        sampler.stop()
        assert sampler.usage(0.0, time.monotonic()) is None
    broken = tmp_path / "nvidia-smi"
    broken.write_bytes(b"\x7fELF no program")
    sampler = GpuSampler({"PATH": str(tmp_path)})
    sampler.stop()
    assert sampler.usage(0.0, time.monotonic()) is None


@pytest.mark.parametrize(
    "line", ["", "a, b, c, d", "GPU-1, 50, 20", "GPU-1, 101, 20, 5", "GPU-1, 5, nan, 5", "g,1,1,-1"]
)
def test_lines_without_figures_are_none(line: str) -> None:
    assert parse_sample(line, 0.0) is None
