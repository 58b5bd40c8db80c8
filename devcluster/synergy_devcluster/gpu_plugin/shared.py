"""GPUs shared by MPS as NVIDIA's device plugin (v0.20) offers them: each GPU is several devices, all equal slices."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from synergy_devcluster.gpu_plugin.devices import CLIENTS_FOLDER, Device, Mount, mounts_of
from synergy_devcluster.gpu_plugin.nvidia_smi import CLIENTS_VARIABLE

Preference = Literal["distributed", "packed"]
PREFERENCES: Final[tuple[Preference, ...]] = get_args(Preference)
MAX_REPLICAS: Final = 48
"""Clients of one GPU that an MPS server takes."""


@dataclass(frozen=True)
class MpsGpus:
    """Each GPU is `replicas` devices named ``UUID::INDEX``. `clients` is the host's folder that containers share."""

    uuids: tuple[str, ...]
    replicas: int
    preference: Preference
    memory_mib: int
    clients: Path | None = None
    prefers: bool = True

    def devices(self, unhealthy: frozenset[str]) -> tuple[Device, ...]:
        """Return the replicas of every GPU; those of an unhealthy GPU are unhealthy."""
        return tuple(
            Device(f"{gpu}::{index}", gpu not in unhealthy) for gpu in self.uuids for index in range(self.replicas)
        )

    def preferred(self, available: Iterable[str], must_include: Iterable[str], size: int) -> list[str]:
        """Choose one device after the other, each of the GPU of which the most (packed) or the least (distributed) is
        in use by then; among equals in the order of the GPUs' index."""
        chosen = sorted(must_include)
        free = sorted(set(available) - set(chosen), key=self._place)
        left = Counter(_gpu(device) for device in free)
        sign = -1 if self.preference == "packed" else 1
        while len(chosen) < size and free:
            best = min(free, key=lambda device: (sign * (self.replicas - left[_gpu(device)]), self._place(device)))
            left[_gpu(best)] -= 1
            free.remove(best)
            chosen.append(best)
        return chosen

    def environment(self, device_ids: Iterable[str]) -> dict[str, str]:
        """Name the GPUs as NVIDIA's container toolkit expects it, once each, and what MPS leaves one client of them."""
        wanted = {_gpu(device) for device in self._known(device_ids)}
        share = {
            "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(100 // self.replicas),
            "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"{self.memory_mib // self.replicas}M",
        }
        names = ("CUDA_MPS_PIPE_DIRECTORY", CLIENTS_VARIABLE)  # the folder stands for the MPS server, too
        pipe = dict.fromkeys(names, CLIENTS_FOLDER) if self.clients is not None else {}
        return {"NVIDIA_VISIBLE_DEVICES": ",".join(gpu for gpu in self.uuids if gpu in wanted), **share, **pipe}

    def mounts(self) -> tuple[Mount, ...]:
        """The folder of the node's MPS clients, if there is one."""
        return mounts_of(self.clients)

    def _known(self, device_ids: Iterable[str]) -> list[str]:
        ids = list(device_ids)
        known = {device.device_id for device in self.devices(frozenset())}
        if unknown := set(ids) - known:
            raise KeyError(min(unknown))
        return ids

    def _place(self, device: str) -> tuple[int, int]:
        gpu, _, index = device.partition("::")
        return self.uuids.index(gpu), int(index)


def _gpu(device: str) -> str:
    return device.partition("::")[0]
