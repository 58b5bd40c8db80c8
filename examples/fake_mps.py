"""Replaces the MPS server of fake GPUs that several jobs share: each is slowed by what the others do.

If a job has its fake GPU alone, its client only reports its usage to nvidia-smi (the devcluster's).

The device plugin of the devcluster gives all containers of a node one folder, with one in it for each GPU. A client has
a file in those of its GPUs, which says how much it computes and is locked as long as the client lives. It is slowed as
the project's model of co-location says of jobs of which nothing but their load is known (docs/colocation.md).
"""

import contextlib
import fcntl
import json
import os
import re
import time
import uuid
from collections.abc import Mapping
from types import TracebackType

_LOOK_S = 0.5
_SAID = 256
_NEW = ".new"
_LEAST = 0.05
_PARTNERS, _COMPUTE, _PRODUCT, _EXCESS = 0.0075, 0.021, -0.299, -0.134


class DeviceError(RuntimeError):
    """The fake GPU can do no more for this client."""


def fraction(own: float, others: list[float], percent: int = 100) -> float:
    """What a job that computes `own` of the time, with so much of the GPU's threads, keeps of its speed beside others.

    Alone too it does no more on the GPU than its threads can.
    """
    ceiling = min(1.0, percent / 100 / own) if own > 0.0 else 1.0
    if not others:
        return ceiling
    compute = sum(others)
    excess = max(0.0, own + compute - 1.0)
    load = _PARTNERS * len(others) + _COMPUTE * compute + _PRODUCT * own * compute + _EXCESS * excess
    return min(ceiling, max(_LEAST, 1.0 + load))


class Client:
    """One job's part of the fake GPUs that the container sees; as a context it leaves them in good order.

    `compute` is the part of the time in which it computes, `bandwidth` that in which it reads or writes the GPU's
    memory, while it is not held up by its host; `memory_mib` the GPU memory it takes. Raises DeviceError if that is
    more than MPS leaves it.
    """

    def __init__(
        self, compute: float, memory_mib: int = 0, environ: Mapping[str, str] = os.environ, *, bandwidth: float = 0.0
    ) -> None:
        limit = re.fullmatch(r"(\d+)M", environ.get("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", ""))
        if limit and memory_mib > int(limit[1]):
            raise DeviceError(f"out of GPU memory: {memory_mib} MiB asked for, MPS leaves this client {limit[1]} MiB")
        self._compute = compute
        self._percent = int(environ.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE") or 100)
        self._said = {"compute": compute, "bandwidth": bandwidth, "memory_mib": memory_mib, "busy": 0.0}
        self._busy_s = 0.0
        self._name = f"{uuid.uuid4().hex}.json"
        self._folders: list[str] = []
        self._files: list[int] = []
        self._fraction, self._looked_at = 1.0, -_LOOK_S
        self._shares = bool(environ.get("CUDA_MPS_PIPE_DIRECTORY"))
        folder = environ.get("CUDA_MPS_PIPE_DIRECTORY") or environ.get("FAKE_GPU_CLIENTS", "")
        for gpu in environ.get("NVIDIA_VISIBLE_DEVICES", "").split(",") if folder else []:
            self._join(os.path.join(folder, gpu))

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Leave: the others are slowed no more."""
        for folder, file in zip(self._folders, self._files, strict=True):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, self._name))
            os.close(file)
        self._folders, self._files = [], []

    def fault(self) -> None:
        """What a kernel that reads beyond its memory does: all clients of the GPU fail. Raises DeviceError."""
        for file in self._files:
            _say(file, {**self._said, "fault": True})
        raise DeviceError("the kernel read memory that is not its own")

    def slowed(self) -> float:
        """What it keeps of its speed now. Raises DeviceError where another client of a GPU brought the server down."""
        now = time.monotonic()
        if now - self._looked_at >= _LOOK_S:
            self._said["busy"] = min(1.0, self._busy_s / max(1e-6, now - self._looked_at))
            self._looked_at, self._busy_s = now, 0.0
            for file in self._files:
                _say(file, self._said)
            kept = (fraction(self._compute, self._others(one), self._percent) for one in self._folders)
            self._fraction = min(kept, default=1.0)
        return self._fraction

    def worked(self, seconds: float) -> None:
        """The device has been busy for it so much longer."""
        self._busy_s += seconds

    def _join(self, folder: str) -> None:
        self._others(folder, joining=True)
        path = os.path.join(folder, self._name)
        file = os.open(f"{path}{_NEW}", os.O_RDWR | os.O_CREAT, 0o666)
        fcntl.flock(file, fcntl.LOCK_EX)
        os.fchmod(file, 0o666)
        _say(file, self._said)
        os.rename(f"{path}{_NEW}", path)  # nobody sees it before it is locked
        self._folders.append(folder)
        self._files.append(file)

    def _others(self, folder: str, *, joining: bool = False) -> list[float]:
        """How much the others on a GPU compute. Files of those who are gone are taken away by who joins."""
        found: list[float] = []
        for name in sorted(os.listdir(folder)) if self._shares or joining else []:
            if name == self._name or name.endswith(_NEW):
                continue
            path = os.path.join(folder, name)
            try:
                file = os.open(path, os.O_RDWR)
            except FileNotFoundError:
                continue
            try:
                said = json.loads(os.pread(file, 4096, 0) or b"{}")
                lives = _is_locked(file)
            finally:
                os.close(file)
            if joining and not lives:
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    os.unlink(path)
            elif said.get("fault"):
                raise DeviceError("another client of the GPU brought its MPS server down")
            elif lives and "compute" in said:
                found.append(float(said["compute"]))
        return found


def _say(file: int, what: Mapping[str, float]) -> None:
    """Always of the same length: a concurrent reader finds the old words or the new ones."""
    os.pwrite(file, json.dumps(what).encode().ljust(_SAID), 0)


def _is_locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(file, fcntl.LOCK_UN)
    return False
