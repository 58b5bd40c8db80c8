"""Fake GPUs that several clients have together: slowed as the model says, out of memory, brought down by one."""

import os
import sys
import time
from pathlib import Path

import pytest

from synergy_core.colocation.predictors.generic import EFFECTS
from synergy_core.model.usage import Usage
from synergy_core.throughput.threads import ceiling

sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))

import fake_mps
from fake_device import FakeDevice
from fake_mps import Client, DeviceError, fraction


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What a container of one GPU finds."""
    monkeypatch.setattr(fake_mps, "_LOOK_S", 0.0)
    for name in ("GPU-1", "GPU-2"):
        (tmp_path / name).mkdir()
    return {
        "NVIDIA_VISIBLE_DEVICES": "GPU-1",
        "CUDA_MPS_PIPE_DIRECTORY": str(tmp_path),
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "8192M",
    }


@pytest.mark.parametrize("loads", [(0.3,), (0.3, 0.3), (0.7, 0.7), (0.9, 0.4), (0.5, 0.6, 0.2), (1.0, 1.0, 1.0)])
def test_jobs_are_slowed_as_the_project_s_model_says(loads: tuple[float, ...]) -> None:
    said = EFFECTS.fractions([Usage(compute=load, bandwidth=0.2) for load in loads])
    for index, load in enumerate(loads):
        others = [other for place, other in enumerate(loads) if place != index]
        assert fraction(load, others) == pytest.approx(min(1.0, said[index]), abs=1e-6)


def test_a_client_does_no_more_than_its_threads_can_alone_and_beside_others(gpu: dict[str, str]) -> None:
    half = {**gpu, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "50"}
    for compute in (0.0, 0.5, 0.7, 1.0):
        with Client(compute, environ=half) as one:
            assert one.slowed() == ceiling(Usage(compute=compute, bandwidth=0.2), 50)
    with Client(0.5, environ=half) as light, Client(0.95, environ=half) as heavy:
        assert light.slowed() == fraction(0.5, [0.95]) < 0.9
        assert heavy.slowed() == 0.5 / 0.95


def test_a_client_is_slowed_by_those_on_its_gpu_as_long_as_they_live(gpu: dict[str, str]) -> None:
    with Client(0.7, environ=gpu) as one, Client(0.7, environ={**gpu, "NVIDIA_VISIBLE_DEVICES": "GPU-2"}):
        assert one.slowed() == 1.0
        with Client(0.6, environ=gpu) as other:
            assert one.slowed() == fraction(0.7, [0.6])
            assert other.slowed() == fraction(0.6, [0.7])
        assert one.slowed() == 1.0


def test_a_client_that_died_slows_nobody_and_leaves_nothing(gpu: dict[str, str]) -> None:
    dead = Client(0.7, environ=gpu)
    os.close(dead._files.pop())
    with Client(0.7, environ=gpu) as one:
        assert one.slowed() == 1.0
        assert len(os.listdir(one._folders[0])) == 1


def test_one_that_faults_brings_down_the_others_but_not_who_comes_later(gpu: dict[str, str]) -> None:
    one, other = Client(0.3, environ=gpu), Client(0.3, environ=gpu)
    with pytest.raises(DeviceError, match="not its own"):
        one.fault()
    with pytest.raises(DeviceError, match="brought its MPS server down"):
        other.slowed()
    for file in (*one._files, *other._files):
        os.close(file)
    with Client(0.3, environ=gpu) as later:
        assert later.slowed() == 1.0


def test_a_job_that_takes_more_memory_than_it_may_fails_by_itself(gpu: dict[str, str]) -> None:
    with pytest.raises(DeviceError, match="8193 MiB asked for, MPS leaves this client 8192 MiB"):
        Client(0.3, 8193, environ=gpu)
    Client(0.3, 8192, environ=gpu).close()


def test_without_shared_gpus_nothing_is_slowed() -> None:
    assert Client(0.9, 10**6, environ={"NVIDIA_VISIBLE_DEVICES": "GPU-1"}).slowed() == 1.0


def test_a_device_takes_longer_beside_another_client(gpu: dict[str, str]) -> None:
    with Client(1.0, environ=gpu) as one, Client(1.0, environ=gpu):
        device, begun = FakeDevice(0.05, one), time.monotonic()
        device.launch()
        device.finish()
        assert time.monotonic() - begun >= 0.05 / fraction(1.0, [1.0]) - 0.002
