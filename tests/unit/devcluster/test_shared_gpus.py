"""GPUs shared by MPS: the fake plugin's devices, which of them a client gets, and what it finds in its container."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_devcluster.errors import BadInputError
from synergy_devcluster.gpu_plugin import __main__ as plugin
from synergy_devcluster.gpu_plugin.devices import (
    CLIENTS_FOLDER,
    NVIDIA_SMI,
    ExclusiveGpus,
    Mount,
    gpu_uuids,
    prepare,
)
from synergy_devcluster.gpu_plugin.gpu_types import gpu_type, node_labels
from synergy_devcluster.gpu_plugin.shared import MpsGpus, Preference
from synergy_devcluster.options import Options

UUIDS = gpu_uuids("node-a", 4)
A, B, C, D = UUIDS


def gpus(preference: Preference, replicas: int = 2) -> MpsGpus:
    """Four GPUs of 16 GiB."""
    return MpsGpus(UUIDS, replicas, preference, 16384)


def choose(sharing: MpsGpus, taken: list[str], size: int = 1) -> list[str]:
    """The devices that a client gets beside those taken."""
    free = [device.device_id for device in sharing.devices(frozenset()) if device.device_id not in taken]
    return sharing.preferred(free, [], size)


def test_each_gpu_is_as_many_devices_as_it_has_replicas() -> None:
    devices = gpus("packed", 3).devices(frozenset({B}))
    assert len(devices) == 12
    assert {device.device_id for device in devices if not device.healthy} == {f"{B}::{index}" for index in range(3)}


def test_packed_fills_the_fullest_gpu_and_distributed_takes_the_emptiest() -> None:
    assert choose(gpus("packed"), [f"{C}::1"]) == [f"{C}::0"]
    assert choose(gpus("distributed"), [f"{A}::1", f"{C}::0"]) == [f"{B}::0"]


def test_a_client_of_all_replicas_gets_one_whole_gpu_when_packed_and_none_is_half_full() -> None:
    assert choose(gpus("packed"), [f"{A}::0", f"{A}::1"], 2) == [f"{B}::0", f"{B}::1"]
    assert choose(gpus("packed"), [f"{C}::0"], 2) == [f"{C}::1", f"{A}::0"]
    assert choose(gpus("distributed"), [], 2) == [f"{A}::0", f"{B}::0"]


def test_what_must_be_included_is() -> None:
    free = [device.device_id for device in gpus("packed").devices(frozenset())]
    assert gpus("packed").preferred(free, [f"{D}::1"], 2) == [f"{D}::1", f"{D}::0"]


@given(st.integers(1, 6), st.lists(st.integers(0, 23), unique=True, max_size=20), st.integers(0, 8))
def test_it_chooses_that_many_different_free_devices(replicas: int, taken: list[int], size: int) -> None:
    for preference in ("packed", "distributed"):
        sharing = gpus(preference, replicas)
        every = [device.device_id for device in sharing.devices(frozenset())]
        free = [device for index, device in enumerate(every) if index not in taken]
        chosen = sharing.preferred(free, [], size)
        assert len(chosen) == len(set(chosen)) == min(size, len(free))
        assert set(chosen) <= set(free)


def test_a_container_is_told_its_gpus_once_and_its_part_of_them() -> None:
    sharing = MpsGpus(UUIDS, 4, "packed", 16384, Path("/host/clients"))
    assert sharing.environment([f"{B}::3", f"{B}::0", f"{A}::1"]) == {
        "NVIDIA_VISIBLE_DEVICES": f"{A},{B}",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "25",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "4096M",
        "CUDA_MPS_PIPE_DIRECTORY": CLIENTS_FOLDER,
        "FAKE_GPU_CLIENTS": CLIENTS_FOLDER,
    }
    mounts = (Mount(CLIENTS_FOLDER, "/host/clients"), Mount(NVIDIA_SMI, "/host/clients/nvidia-smi", read_only=True))
    assert sharing.mounts() == mounts
    assert gpus("packed").mounts() == ()
    alone = ExclusiveGpus(UUIDS, Path("/host/clients"))
    assert alone.environment([B]) == {"NVIDIA_VISIBLE_DEVICES": B, "FAKE_GPU_CLIENTS": CLIENTS_FOLDER}
    assert (alone.mounts(), ExclusiveGpus(UUIDS).mounts()) == (mounts, ())


@pytest.mark.parametrize("device", [A, f"{A}::2", "GPU-0::0"])
def test_a_device_of_another_node_is_refused(device: str) -> None:
    with pytest.raises(KeyError):
        gpus("packed").environment([f"{A}::0", device])


def test_labels_are_those_of_gpu_feature_discovery_under_mps() -> None:
    labels = node_labels(gpu_type("V100"), 4, 2)
    assert labels["nvidia.com/gpu.product"] == "Tesla-V100-SXM2-16GB-SHARED"
    assert labels["nvidia.com/gpu.count"] == "4"
    assert labels["nvidia.com/gpu.replicas"] == "2"
    assert labels["nvidia.com/gpu.sharing-strategy"] == "mps"
    assert labels["nvidia.com/mps.capable"] == "true"
    assert node_labels(gpu_type("V100"), 4, 2, renamed=True)["nvidia.com/gpu.product"] == "Tesla-V100-SXM2-16GB"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"gpu_replicas": 0}, "--gpu-replicas"),
        ({"gpu_replicas": 49}, "--gpu-replicas"),
        ({"gpu_replicas": 2, "gpu_preference": "random"}, "--gpu-preference"),
        ({"gpu_renamed": True}, "--gpu-renamed"),
    ],
)
def test_bad_options_name_the_field(change: dict[str, object], field: str) -> None:
    with pytest.raises(BadInputError, match=field):
        Options(**change)  # type: ignore[arg-type]


def test_options_say_how_gpus_are_shared() -> None:
    shared = Options(gpus=4, gpu_replicas=2, gpu_preference="packed", gpu_renamed=True)
    assert shared.in_words().endswith("--gpu-replicas 2 --gpu-preference packed --gpu-renamed")
    assert shared.resource == "nvidia.com/gpu.shared"
    assert Options.from_json(shared.to_json()) == shared
    assert not shared.same_cluster(Options(gpus=4))


def test_the_plugin_refuses_replicas_that_mps_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gpu-plugin"])
    flags = ["--node=n", "--gpus=1", "--replicas=49", f"--health-file={tmp_path / 'unhealthy.json'}"]
    with pytest.raises(SystemExit):
        plugin.main(flags)
    assert "--replicas: 49" in capsys.readouterr().err


def test_a_node_without_gpus_has_the_folder_and_the_program_too(tmp_path: Path) -> None:
    clients = tmp_path / "gpus" / "clients"
    for uuids in ([], ["GPU-1"], ["GPU-1"]):
        prepare(clients, uuids)
        assert {entry.name for entry in clients.iterdir()} == {"nvidia-smi", *uuids}
    assert (clients / "nvidia-smi").stat().st_mode & 0o111
    assert (clients / "GPU-1").stat().st_mode & 0o7777 == 0o1777
