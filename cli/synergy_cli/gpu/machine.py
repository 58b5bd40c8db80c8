"""The GPU of this machine, if there is one, and what the machine is."""

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

MIB = 1 << 20
_FIELDS = ("uuid", "name", "memory.total", "driver_version", "compute_mode")
_PATIENCE_S = 30.0


class NoGpuError(Exception):
    """There is no GPU to measure on; the message says how that was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One NVIDIA GPU."""

    uuid: str
    name: str
    memory_bytes: int
    driver: str
    compute_mode: str


def find_gpu(environ: Mapping[str, str]) -> Gpu:
    """The first GPU of this machine. Raises NoGpuError."""
    program = shutil.which("nvidia-smi", path=environ.get("PATH"))
    if program is None:
        raise NoGpuError("there is no NVIDIA GPU here: nvidia-smi is not in PATH")
    command = [program, f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(
            command, env=dict(environ), capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoGpuError(f"there is no GPU that could be used here: nvidia-smi cannot be run: {error}") from None
    lines = answer.stdout.strip().splitlines()
    if answer.returncode != 0 or not lines:
        said = (answer.stderr or answer.stdout).strip().replace("\n", " ")[:300] or "nothing"
        raise NoGpuError(f"there is no GPU that could be used here: nvidia-smi ended with {answer.returncode}: {said}")
    parts = [part.strip() for part in lines[0].split(",")]
    try:
        uuid, name, memory, driver, mode = parts
        return Gpu(uuid=uuid, name=name, memory_bytes=int(float(memory)) * MIB, driver=driver, compute_mode=mode)
    except ValueError:
        raise NoGpuError(f"nvidia-smi lists no GPU as expected: {lines[0]!r}") from None


def used_memory(gpu: str, environ: Mapping[str, str]) -> int:
    """Bytes of the memory in use on the GPU of that UUID; 0 where nvidia-smi does not tell."""
    command = ["nvidia-smi", f"--id={gpu}", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(
            command, env=dict(environ), capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
        return int(float(answer.stdout.strip())) * MIB
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return 0


def no_gpu(stand_in_s: float) -> Gpu:
    """A substitute for a GPU: something that takes so long for a step."""
    return Gpu(uuid="", name=f"none, {stand_in_s:g} s for a step", memory_bytes=0, driver="", compute_mode="")


def machine(gpu: Gpu) -> dict[str, object]:
    """What a reader of this machine's figures must know."""
    return {
        "gpu": gpu.name,
        "gpu_memory_bytes": gpu.memory_bytes,
        "driver": gpu.driver,
        "compute_mode": gpu.compute_mode,
        "cpus": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.machine()
