"""One more run, of a single worker: how long a step takes that sends nothing."""

from __future__ import annotations

import os
import time
from contextlib import closing
from typing import TYPE_CHECKING

from synergy_profiler.child import Child
from synergy_profiler.measurement import Sample, measure
from synergy_profiler.steps import StepReceiver
from synergy_profiler.traffic.measure import TrafficMeter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from synergy_profiler.printed import PrintedSteps

PROCESSES = "PET_NPROC_PER_NODE"
"""How many processes torchrun starts."""
_POLL_S = 0.1
_LEAST_STEPS = 10


def step_alone(
    command: Sequence[str], printed: PrintedSteps | None, *, steps: tuple[int, int], timeout_s: float, grace_s: float
) -> float | None:
    """Seconds of a step of the command with one worker, after `steps[0]` and over at least `steps[1]` steps.

    None where it cannot be had: the command does not step in time, or starts several workers whatever it is told.
    """
    with closing(StepReceiver()) as receiver, closing(TrafficMeter(2)) as meter:
        environ = {**os.environ, "SYNERGY_PROFILE_SOCKET": receiver.address, "PYTHONUNBUFFERED": "1", PROCESSES: "1"}
        child = Child(command, environ, printed)
        try:
            samples = _samples(child, printed or receiver, meter, steps, time.monotonic() + timeout_s)
        finally:
            child.stop(grace_s)
        if samples is None or meter.traffic(samples[-1].step - samples[0].step) is not None:
            return None
        return 1.0 / measure(samples).steps_per_second


def _samples(
    child: Child, receiver: StepReceiver | PrintedSteps, meter: TrafficMeter, steps: tuple[int, int], deadline: float
) -> list[Sample] | None:
    warmup, wanted = steps
    found: list[Sample] = []
    while not found or found[-1].step - found[0].step < max(wanted, _LEAST_STEPS):
        sample = receiver.next(_POLL_S)
        if sample is not None and sample.step >= warmup and (not found or sample.step > found[-1].step):
            if not found:
                meter.begin(child.pid)
            found.append(sample)
        elif time.monotonic() > deadline or (sample is None and child.exit_code() is not None):
            return None
    meter.end(child.pid)
    return found
