"""What it takes to preempt a job: saving and loading its checkpoint, or suspending its process by cuda-checkpoint."""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from synergy_cli.gpu.measuring import START_S, Command, Setting, Training, TrainingError

Report = Callable[[str], None]
Checkpointing = Callable[[str, str, Path], Sequence[str]]
"""The command that saves or loads (`save`, `load`) that model's checkpoint in a file: `checkpointing`."""
PROGRAM = "cuda-checkpoint"
_FILE = "checkpoint"


def checkpoint_times(
    models: Sequence[str], environ: Mapping[str, str], report: Report, command: Checkpointing
) -> list[dict[str, Any]]:
    """Of each model, in a folder of this machine's temporary files; what failed has `failed` with the last words."""
    found: list[dict[str, Any]] = []
    for model in models:
        with tempfile.TemporaryDirectory(prefix="kube-synergy-checkpoint-") as folder:
            path = Path(folder) / _FILE
            try:
                saved, loaded = (_said(command(what, model, path), environ) for what in ("save", "load"))
            except TrainingError as error:
                report(f"checkpoint of {model}: {error}")
                found.append({"model": model, "failed": str(error)})
                continue
        report(f"checkpoint of {model}: saved in {saved['seconds']:.3f} s, loaded in {loaded['load_seconds']:.3f} s")
        found.append({"model": model, "save": saved, "load": loaded})
    return found


def _said(command: Sequence[str], environ: Mapping[str, str]) -> dict[str, float]:
    try:
        answer = subprocess.run(
            command, env=dict(environ), capture_output=True, text=True, timeout=START_S, check=False
        )
        if answer.returncode == 0:
            said: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
            return said
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
        raise TrainingError(str(error)) from None
    raise TrainingError(" | ".join(answer.stderr.strip().splitlines()[-3:]) or f"exit code {answer.returncode}")


def suspension(
    settings: Sequence[Setting],
    environ: Mapping[str, str],
    report: Report,
    command: Command,
    gpu_memory: Callable[[], int],
) -> dict[str, Any]:
    """Seconds to suspend and to resume each training by cuda-checkpoint, and the GPU memory that it holds meanwhile.

    `skipped` where the program is not there. What failed has `failed`.
    """
    program = shutil.which(PROGRAM, path=environ.get("PATH"))
    if program is None:
        return {"skipped": f"{PROGRAM} is not in PATH; NVIDIA offers it beside drivers from 550 on"}
    found = []
    for setting in settings:
        figures: dict[str, Any] = {"model": setting.model, "batch": setting.batch}
        try:
            figures |= _suspended(program, setting, environ, command, gpu_memory)
        except TrainingError as error:
            figures["failed"] = str(error)
        told = (
            figures.get("failed") or f"{figures['suspend_seconds']:.3f} s, resumed in {figures['resume_seconds']:.3f} s"
        )
        report(f"{setting} suspended: {told}")
        found.append(figures)
    return {"trainings": found}


def _suspended(
    program: str, setting: Setting, environ: Mapping[str, str], command: Command, gpu_memory: Callable[[], int]
) -> dict[str, Any]:
    training = Training(setting, command, environ)
    try:
        training.next(time.monotonic() + START_S, "its first steps")
        training.begin()
        training.next(time.monotonic() + START_S, "a step")
        running = gpu_memory()
        suspend_s = _toggle(program, training.pid)
        suspended = gpu_memory()
        training.heard()
        resumed_at = time.monotonic()
        resume_s = _toggle(program, training.pid)
        training.next(time.monotonic() + START_S, "a step after it was resumed")
        return {
            "suspend_seconds": suspend_s,
            "resume_seconds": resume_s,
            "next_steps_seconds": time.monotonic() - resumed_at,
            "gpu_memory_bytes": {"running": running, "suspended": suspended},
        }
    finally:
        training.stop()


def _toggle(program: str, pid: int) -> float:
    """Seconds that it took. Raises TrainingError."""
    begun = time.monotonic()
    command = [program, "--toggle", "--pid", str(pid)]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=START_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TrainingError(f"{PROGRAM}: {error}") from None
    if answer.returncode != 0:
        said = (answer.stderr or answer.stdout).strip()[:300]
        raise TrainingError(f"{PROGRAM} ended with {answer.returncode}: {said or 'it said nothing'}")
    return time.monotonic() - begun
