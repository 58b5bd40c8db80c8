"""What a profile run measures beside its steps: what the command does to its GPUs, and what its workers send."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from synergy_profiler.counters.collect import Counters, without_counters
from synergy_profiler.counters.load import with_load
from synergy_profiler.counters.nsight import NsightError, profile_kernels
from synergy_profiler.gpu_usage import GpuSampler
from synergy_profiler.printed import PrintedSteps
from synergy_profiler.traffic.alone import step_alone
from synergy_profiler.traffic.measure import Traffic, TrafficMeter, overlap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from synergy_profiler.gpu_usage import GpuUsage
    from synergy_profiler.measurement import Measurement
    from synergy_profiler.options import Options

WORTH_A_RUN = 0.05
"""Part of a step that sending must take before a further run looks for how much of it is hidden."""


class Beside:
    """Measures from when it is made until `stop`. Steps are measured from `begin` to `end`. `close` removes files."""

    def __init__(self, command: Sequence[str], options: Options) -> None:
        self._command, self._options = command, options
        self._gpus = GpuSampler()
        self._counters = Counters() if options.counters == "Auto" else None
        self._meter = TrafficMeter(options.workers) if options.workers > 1 else None
        self.environment = {} if self._meter is None else self._meter.environment

    @property
    def settle_s(self) -> float:
        """How long training must last, beyond what its steps need, before counters tell of nothing else."""
        return 0.0 if self._counters is None else self._counters.settle_s

    def begin(self, process: int) -> None:
        """The first measured step of the command, which is this process, begins."""
        if self._meter is not None:
            self._meter.begin(process)

    def end(self, process: int) -> None:
        """The last one has ended."""
        if self._meter is not None:
            self._meter.end(process)

    def stop(self) -> None:
        """The command ends."""
        self._gpus.stop()
        if self._counters is not None:
            self._counters.stop()

    def close(self) -> None:
        """Nothing more is asked."""
        if self._meter is not None:
            self._meter.close()

    def usage(self, begin: float, end: float) -> GpuUsage | None:
        """What the command did to its GPUs in that time: by counters where these were asked for and tell, else as
        nvidia-smi told."""
        usage = self._gpus.usage(begin, end)
        if usage is None:
            return None
        if self._counters is not None:
            return self._counters.usage(usage, begin, end)
        return self._by_kernels(usage) if self._options.counters == "Nsight" else usage

    def traffic(self, measurement: Measurement) -> Traffic | None:
        """What each worker sent in a step, and how much of that the step hid."""
        sent = None if self._meter is None else self._meter.traffic(measurement.steps)
        if sent is None or sent.sending_seconds is None:
            return sent
        step_s = 1.0 / measurement.steps_per_second
        if sent.sending_seconds < WORTH_A_RUN * step_s:
            return sent
        options = self._options
        alone_s = step_alone(
            self._command,
            self._printed(),
            steps=(options.warmup_steps, options.steps),
            min_seconds=options.min_seconds,
            timeout_s=options.timeout_s,
            grace_s=options.grace_s,
        )
        return sent if alone_s is None else replace(sent, overlap=overlap(sent.sending_seconds, step_s, alone_s))

    def _by_kernels(self, usage: GpuUsage) -> GpuUsage:
        options = self._options
        how = {"busy": usage.compute, "timeout_s": options.timeout_s, "grace_s": options.grace_s}
        try:
            return with_load(usage, "Nsight", profile_kernels(self._command, self._printed(), **how))
        except (NsightError, OSError) as error:
            return without_counters(usage, str(error))

    def _printed(self) -> PrintedSteps | None:
        return PrintedSteps(self._options.regex) if self._options.regex else None
