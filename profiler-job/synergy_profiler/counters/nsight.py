"""One more run of the command, under Nsight Compute: its counters of each kernel.

Nsight Compute replays every kernel, so the run says nothing of speed. It is ended after a few training steps; which
share of the time kernels run at all, nvidia-smi has told of the run before.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from synergy_profiler.child import Child, descendants
from synergy_profiler.counters.kernels import METRICS, KernelsError, load_of, read_kernels
from synergy_profiler.steps import StepReceiver

if TYPE_CHECKING:
    from collections.abc import Sequence

    from synergy_profiler.counters.load import Load
    from synergy_profiler.printed import PrintedSteps

PROGRAM = "ncu"
STEPS = 2
"""Training steps whose kernels are looked at, as in the thesis."""
_POLL_S = 0.1


class NsightError(Exception):
    """Nothing was measured; the message says why."""


def profile_kernels(
    command: Sequence[str], printed: PrintedSteps | None, *, busy: float, timeout_s: float, grace_s: float
) -> Load:
    """The command's load by Nsight Compute's figures of its kernels; kernels run `busy` of the time. Raises
    NsightError."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise NsightError(f"{PROGRAM} (Nsight Compute) is not in the image's PATH")
    with tempfile.TemporaryDirectory(prefix="synergy-nsight-") as folder, closing(StepReceiver()) as receiver:
        log = os.path.join(folder, "kernels.csv")
        options = ["--target-processes", "all", "--clock-control", "none", "--csv", "--page", "raw"]
        options += ["--print-units", "base", "--metrics", ",".join(METRICS), "--log-file", log]
        environ = {**os.environ, "SYNERGY_PROFILE_SOCKET": receiver.address, "PYTHONUNBUFFERED": "1"}
        child = Child([program, *options, *command], environ, printed)
        try:
            _until_stepped(child, printed or receiver, time.monotonic() + timeout_s)
            _end_command(child, grace_s)
        finally:
            child.stop(grace_s)
        return _load(log, busy)


def _until_stepped(child: Child, receiver: StepReceiver | PrintedSteps, deadline: float) -> None:
    first: int | None = None
    while child.exit_code() is None:
        sample = receiver.next(_POLL_S)
        if sample is not None:
            first = sample.step if first is None else first
            if sample.step - first >= STEPS:
                return
        if time.monotonic() > deadline:
            raise NsightError(f"under {PROGRAM} the command did not make {STEPS} steps in time")


def _end_command(child: Child, grace_s: float) -> None:
    """End the command but not Nsight Compute, which writes its figures when the command has ended."""
    for process in descendants(child.pid):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
    until = time.monotonic() + grace_s
    while child.exit_code() is None and time.monotonic() < until:
        time.sleep(_POLL_S)


def _load(log: str, busy: float) -> Load:
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            return load_of(read_kernels(file.read()), busy)
    except OSError as error:
        raise NsightError(f"{PROGRAM} wrote no figures") from error
    except KernelsError as error:
        raise NsightError(f"{PROGRAM}: {error}") from error
