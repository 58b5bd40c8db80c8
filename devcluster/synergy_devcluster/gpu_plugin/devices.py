"""The fake GPUs of one node, their health, and how they are handed out."""

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from synergy_devcluster.gpu_plugin.nvidia_smi import CLIENTS_VARIABLE

CLIENTS_FOLDER: Final = "/var/run/fake-gpus"
"""Where a container finds the folder that all clients of the node's GPUs share."""
NVIDIA_SMI: Final = "/usr/bin/nvidia-smi"
_NAMESPACE = uuid.UUID("6b1f3f0e-6f0a-4c58-8d0b-5a8a2a3f4c11")


@dataclass(frozen=True)
class Device:
    """One device as the kubelet sees it. A shared GPU is several devices."""

    device_id: str
    healthy: bool


@dataclass(frozen=True)
class Mount:
    """A folder or file of the host that a container sees."""

    container_path: str
    host_path: str
    read_only: bool = False


def mounts_of(clients: Path | None) -> tuple[Mount, ...]:
    """The folder of the node's clients, and nvidia-smi as NVIDIA's container toolkit brings it along."""
    if clients is None:
        return ()
    return Mount(CLIENTS_FOLDER, str(clients)), Mount(NVIDIA_SMI, str(clients / "nvidia-smi"), read_only=True)


def prepare(clients: Path, uuids: Iterable[str]) -> None:
    """Make the folder of `mounts_of`: in it one for each GPU, where any user's container may be a client."""
    clients.mkdir(parents=True, exist_ok=True)  # also of a node without GPUs
    for gpu in uuids:
        (clients / gpu).mkdir(exist_ok=True)
        (clients / gpu).chmod(0o1777)
    program = clients / "nvidia-smi"
    fresh = clients / "nvidia-smi.new"
    fresh.write_bytes((Path(__file__).parent / "nvidia_smi.py").read_bytes())
    fresh.chmod(0o755)
    fresh.replace(program)


class Sharing(Protocol):
    """How GPUs become devices. One implementation per sharing strategy."""

    @property
    def prefers(self) -> bool:
        """Whether the kubelet must call :meth:`preferred` before an allocation."""

    def devices(self, unhealthy: frozenset[str]) -> tuple[Device, ...]:
        """Return every device, given the UUIDs of the GPUs that are unhealthy."""

    def preferred(self, available: Iterable[str], must_include: Iterable[str], size: int) -> list[str]:
        """Choose ``size`` device ids of ``available``, with all of ``must_include`` among them."""

    def environment(self, device_ids: Iterable[str]) -> dict[str, str]:
        """Return the environment of a container that got these devices.

        Raises:
            KeyError: a device id is not one of this node's.
        """

    def mounts(self) -> tuple[Mount, ...]:
        """Return what a container with any of the devices sees of the host."""


@dataclass(frozen=True)
class ExclusiveGpus:
    """Each GPU is one device, whose id is the GPU's UUID."""

    uuids: tuple[str, ...]
    clients: Path | None = None
    prefers: bool = False

    def devices(self, unhealthy: frozenset[str]) -> tuple[Device, ...]:
        """Return one device per GPU."""
        return tuple(Device(gpu, gpu not in unhealthy) for gpu in self.uuids)

    def preferred(self, available: Iterable[str], must_include: Iterable[str], size: int) -> list[str]:
        """Choose in the order of the GPUs' index."""
        must = set(must_include)
        offered = set(available) - must
        rest = [gpu for gpu in self.uuids if gpu in offered]
        return sorted(must, key=self.uuids.index) + rest[: size - len(must)]

    def environment(self, device_ids: Iterable[str]) -> dict[str, str]:
        """Name the GPUs the way NVIDIA's container toolkit expects it."""
        wanted = set(device_ids)
        if unknown := wanted - set(self.uuids):
            raise KeyError(min(unknown))
        told = {CLIENTS_VARIABLE: CLIENTS_FOLDER} if self.clients is not None else {}
        return {"NVIDIA_VISIBLE_DEVICES": ",".join(gpu for gpu in self.uuids if gpu in wanted), **told}

    def mounts(self) -> tuple[Mount, ...]:
        """The folder of the node's clients, if there is one."""
        return mounts_of(self.clients)


def gpu_uuids(node: str, count: int) -> tuple[str, ...]:
    """Return the UUIDs of a node's GPUs: the same for the same node name and index at every start."""
    return tuple(f"GPU-{uuid.uuid5(_NAMESPACE, f'{node}/{index}')}" for index in range(count))


def read_unhealthy(path: Path) -> frozenset[str]:
    """Return the UUIDs listed in a health file; no file means that all GPUs are healthy.

    Raises:
        ValueError: the file is not a JSON list of strings.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return frozenset()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"{path} is not a JSON list of GPU UUIDs")
    return frozenset(value)


def write_unhealthy(path: Path, uuids: Iterable[str]) -> None:
    """Write a health file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(sorted(uuids)), encoding="utf-8")
    partial.replace(path)
