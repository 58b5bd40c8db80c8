"""One profile run: start the user's command, watch its steps, stop it, say how fast it was."""

from __future__ import annotations

import os
import re
import resource
import time
from contextlib import closing
from typing import TYPE_CHECKING

from synergy_job.cgroup import Cgroup
from synergy_job.environment import visible_uuids
from synergy_profiler.beside import Beside
from synergy_profiler.child import Child
from synergy_profiler.measurement import Sample, measure
from synergy_profiler.printed import PrintedSteps
from synergy_profiler.result import Failed, Measured
from synergy_profiler.steps import StepReceiver
from synergy_profiler.together import Together, together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from synergy_profiler.options import Options

POLL_S = 0.1
MEMORY_EVERY_S = 0.5


SETTLED_S = 3.0
"""Seconds of counter readings that are averaged, all of them during training."""
LEAST_LINES = 5
"""Lines with a step that make a rate, however many steps each covers."""


def run(command: Sequence[str], options: Options) -> Measured | Failed:
    """Run the command until enough of its steps are seen, then stop it. Nothing of it is left running."""
    with closing(StepReceiver()) as receiver:
        try:
            printed = PrintedSteps(options.regex) if options.regex else None
        except re.error as error:
            return Failed("BadCommand", f"spec.throughput.regex is no regular expression here: {error}")
        with closing(Beside(command, options)) as beside:
            try:
                child = Child(command, {**os.environ, **beside.environment, **_told(receiver, printed)}, printed)
            except (OSError, ValueError) as error:
                beside.stop()
                return Failed("BadCommand", f"the command cannot be run: {error}")
            watch = _Watch(child, printed or receiver, options, beside)
            try:
                failure = watch.until_measured()
            finally:
                beside.stop()
                child.stop(options.grace_s)
            if failure is None:
                return watch.result()
    return Failed(failure.reason, failure.message, failure.exit_code, child.log_tail())


def _told(receiver: StepReceiver, printed: PrintedSteps | None) -> dict[str, str]:
    """The command's environment: where to report steps, and to print at once if steps are read from the output."""
    address = {"SYNERGY_PROFILE_SOCKET": receiver.address}
    return address if printed is None else {**address, "PYTHONUNBUFFERED": "1"}


class _Watch:
    """What is seen of the child while it trains."""

    def __init__(
        self, child: Child, receiver: StepReceiver | PrintedSteps, options: Options, beside: Beside | None = None
    ) -> None:
        self._child = child
        self._receiver = receiver
        self._options = options
        self._beside = beside
        self._settle_s = 0.0 if beside is None else beside.settle_s
        self._least_samples = LEAST_LINES if options.regex else 2
        self._cgroup = Cgroup.of_this_process()
        self._last = Sample(-1, -1.0)
        self._measured: list[Sample] = []
        self._cpu_marks: list[tuple[float, float | None]] = []
        self._memory = 0
        self._memory_seen = 0
        self._cache_bytes: int | None = None
        self._tensors: tuple[int, int] | None = None
        self._epoch_steps: int | None = None
        self._memory_read_at = float("-inf")

    def until_measured(self) -> Failed | None:
        """Read messages until there are enough; what went wrong before that, if anything did."""
        deadline = time.monotonic() + self._options.timeout_s
        while not (self._enough() and self._settled()):
            exit_code, unreadable = self._child.exit_code(), self._receiver.unreadable
            sample = self._receiver.next(POLL_S)
            self._watch_memory()
            if self._receiver.problem:
                return Failed("BadCommand", self._receiver.problem)
            if sample is not None:
                self._take(sample)
            elif exit_code is not None and self._receiver.unreadable == unreadable:  # the queue was empty after its end
                if self._enough() or (exit_code == 0 and self._is_told_together()):
                    break
                return self._ended(exit_code)
            if time.monotonic() > deadline:
                if self._enough() or self._is_told_together():
                    break
                return self._timed_out()
        self._mark_cpu()
        if self._beside is not None:
            self._beside.end(self._child.pid)
        return None

    def result(self) -> Measured | Failed:
        """The rate and what it took, or `TooNoisy`."""
        measurement = measure(self._measured)
        if measurement.relative_error > self._options.max_relative_error and not self._options.pair_seconds:
            return Failed(
                "TooNoisy",
                f"the mean step time is known to {measurement.relative_error:.0%} only, more than "
                f"{self._options.max_relative_error:.0%}: measure more steps (profile.steps) or begin later "
                "(profile.warmupSteps)",
            )
        biggest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        memory = max(self._memory, self._memory_seen - (self._cache_bytes or 0), biggest)
        beside = self._beside
        return Measured(
            measurement,
            self._options.warmup_steps,
            self._cpu_millis(),
            memory,
            self._cache_bytes is not None,
            self._tensors,
            self._epoch_steps,
            None if beside is None else beside.usage(self._measured[0].at, self._measured[-1].at),
            None if beside is None else beside.traffic(measurement),
            self._together(),
        )

    def _take(self, sample: Sample) -> None:
        if sample.step <= self._last.step or sample.trained <= self._last.trained:
            return  # of a second process that trains, or of a second loop
        self._last = sample
        if sample.cache_bytes is not None:
            self._cache_bytes = sample.cache_bytes
        self._tensors = sample.tensors or self._tensors
        self._epoch_steps = sample.epoch_steps or self._epoch_steps
        # the cache fills meanwhile: what was seen before this message held no more of it than the message says
        self._memory = max(self._memory, self._memory_seen - (self._cache_bytes or 0))
        self._memory_seen = 0
        if sample.step >= self._options.warmup_steps:
            if not self._measured:
                self._mark_cpu()
                if self._beside is not None:
                    self._beside.begin(self._child.pid)
            self._measured.append(sample)

    def _together(self) -> Together | None:
        if not self._options.pair_seconds:
            return None
        gpus = visible_uuids(os.environ.get("NVIDIA_VISIBLE_DEVICES", ""))
        return together(self._measured, time.time() - time.monotonic(), gpus)

    def _is_told_together(self) -> bool:
        """The command ran beside another, and what is known of its steps is enough to compare them."""
        return self._options.pair_seconds > 0 and len(self._measured) >= self._least_samples

    def _enough(self) -> bool:
        if len(self._measured) < self._least_samples:
            return False
        first, last = self._measured[0], self._measured[-1]
        if self._options.pair_seconds:
            return last.at - first.at >= self._options.pair_seconds
        return (
            last.step - first.step >= self._options.steps and last.trained - first.trained >= self._options.min_seconds
        )

    def _settled(self) -> bool:
        """Training has lasted long enough for the counters too."""
        return not self._settle_s or self._measured[-1].at - self._measured[0].at >= self._settle_s + SETTLED_S

    def _needed(self) -> int:
        return self._options.warmup_steps + self._options.steps

    def _ended(self, exit_code: int) -> Failed:
        if exit_code != 0:
            return Failed(
                "Crashed",
                f"the command ended with exit code {exit_code} before step {self._needed()}{self._seen()}",
                exit_code,
            )
        if self._last.step < 1:
            hint = f"; {self._receiver.how_to_be_seen}"
            return Failed("NoSteps", f"the command ended without a training step{self._garbage()}{hint}", 0)
        hint = "" if self._options.regex else "; let synergy_job.iterate end the training"
        return Failed("NoSteps", f"the command ended by itself before step {self._needed()}{self._seen()}{hint}", 0)

    def _timed_out(self) -> Failed:
        seconds = f"{self._options.timeout_s:g} s"
        if self._last.step < 1:
            hint = f"; {self._receiver.how_to_be_seen}; or is profile.timeoutSeconds too small?"
            return Failed("Timeout", f"the command made no training step within {seconds}{self._garbage()}{hint}")
        hint = "; raise profile.timeoutSeconds or lower profile.steps"
        return Failed("Timeout", f"step {self._needed()} was not reached within {seconds}{self._seen()}{hint}")

    def _seen(self) -> str:
        return f" (last seen: step {max(self._last.step, 0)}){self._garbage()}"

    def _garbage(self) -> str:
        count = self._receiver.unreadable
        return f" ({count} step messages made no sense)" if count else ""

    def _mark_cpu(self) -> None:
        self._cpu_marks.append((time.monotonic(), self._cgroup.cpu_seconds()))

    def _cpu_millis(self) -> int | None:
        (begin, used_before), (end, used_after) = self._cpu_marks
        if used_before is None or used_after is None:
            return None
        return round(1000 * (used_after - used_before) / (end - begin))

    def _watch_memory(self) -> None:
        now = time.monotonic()
        if now - self._memory_read_at >= MEMORY_EVERY_S:
            self._memory_read_at = now
            self._memory_seen = max(self._memory_seen, self._cgroup.memory_bytes() or 0)
