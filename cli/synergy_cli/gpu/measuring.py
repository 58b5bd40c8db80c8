"""Trainings side by side on one GPU: how fast is each."""

import json
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import IO

from synergy_profiler.counters.collect import Counters
from synergy_profiler.gpu_usage import GpuSampler, GpuUsage
from synergy_profiler.measurement import Sample, measure

START_S = 180.0
"""Importing PyTorch, building a model, and compiling its kernels may take so long."""
_END_S = 20.0


@dataclass(frozen=True, order=True, slots=True)
class Setting:
    """A model and the samples of a training step."""

    model: str
    batch: int

    def __str__(self) -> str:
        return f"{self.model}-{self.batch}"


Command = Callable[[Setting], Sequence[str]]
"""The command that trains so; `training` says how it speaks."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Steps per second of each training, and what all did to the GPU."""

    steps_per_s: tuple[float, ...]
    usage: GpuUsage | None
    """By counters where the GPU has some; None where nvidia-smi told nothing."""


class TrainingError(Exception):
    """A training did not come to be measured; the message has what it said last."""


class Training:
    """One process that trains."""

    def __init__(self, setting: Setting, command: Command, environ: Mapping[str, str]) -> None:
        self.setting = setting
        errors = tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - `stop` closes it
        self._errors = errors
        self._process = subprocess.Popen(
            list(command(setting)),
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        self._said: queue.Queue[dict[str, float] | None] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True)
        self._listener.start()

    def _listen(self, lines: IO[str]) -> None:
        with lines:
            for line in lines:
                with suppress(ValueError):
                    said = json.loads(line)
                    if isinstance(said, dict):
                        self._said.put(said)
        self._said.put(None)

    def next(self, until: float, waiting_for: str) -> dict[str, float]:
        """What it says next. Raises TrainingError where it ends, or says nothing more until then."""
        try:
            said = self._said.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            raise TrainingError(f"{self.setting}: {waiting_for} did not come in time{self._tail()}") from None
        if said is None:
            code = self._process.wait()
            raise TrainingError(f"{self.setting} ended with exit code {code} before {waiting_for}{self._tail()}")
        return said

    @property
    def pid(self) -> int:
        """Of its process."""
        return self._process.pid

    def begin(self) -> None:
        """Let it train."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.write("begin\n")
                self._process.stdin.flush()

    def heard(self) -> None:
        """Take in all that it has said so far."""
        with suppress(queue.Empty):
            while self._said.get_nowait() is not None:
                pass
            self._said.put(None)  # that it has ended is still to be heard

    def stop(self) -> None:
        """End it."""
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join(_END_S)
        self._errors.close()

    def _tail(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()[-3:]
        return f"; its last words: {' | '.join(lines)}" if lines else ""


def side_by_side(
    settings: Sequence[Setting],
    command: Command,
    environ: Mapping[str, str],
    *,
    settle_s: float,
    seconds: float,
    limits: Sequence[int] = (),
) -> Measured:
    """Train all of them at once, let them settle, and measure for so many seconds.

    `limits` are the percent of the GPU's threads that each gets as a client of MPS; none if empty. Raises
    TrainingError.
    """
    with ExitStack() as stack:
        trainings = []
        for setting, limited in zip(settings, _limited(environ, limits, len(settings)), strict=True):
            trainings.append(Training(setting, command, limited))
            stack.callback(trainings[-1].stop)
        ready_by = time.monotonic() + START_S
        for training in trainings:
            training.next(ready_by, "its first steps")
        sampler, counters = GpuSampler(environ), Counters(environ)
        stack.callback(counters.stop)
        stack.callback(sampler.stop)
        for training in trainings:
            training.begin()
        begin = time.monotonic() + settle_s
        end = begin + seconds
        speeds = tuple(_speed(training, begin, end) for training in trainings)
        usage = sampler.usage(begin, end)
        return Measured(speeds, None if usage is None else counters.usage(usage, begin, end))


def _limited(environ: Mapping[str, str], limits: Sequence[int], count: int) -> list[Mapping[str, str]]:
    if not limits:
        return [environ] * count
    return [{**environ, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(percent)} for percent in limits]


def _speed(training: Training, begin: float, end: float) -> float:
    """Of the steps that ended between the two moments, and of as many after as make two marks."""
    marks: list[Sample] = []
    while not marks or marks[-1].at < end or len(marks) < 2:
        said = training.next(end + START_S, "enough of its steps")
        if "step" in said and said["at"] >= begin:
            marks.append(Sample(int(said["step"]), float(said["at"])))
    return measure(marks).steps_per_second
