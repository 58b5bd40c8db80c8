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
    from collections.abc import Mapping, Sequence

    from synergy_profiler.printed import PrintedSteps

_ONE = {"PET_NPROC_PER_NODE": "1", "WORLD_SIZE": "1", "RANK": "0", "LOCAL_WORLD_SIZE": "1", "LOCAL_RANK": "0"}
"""What says how many processes there are: to torchrun, and to scripts that start them or find each other by the usual
names."""
_DEVICES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
_POLL_S = 0.1
_LEAST_STEPS = 10


def step_alone(
    command: Sequence[str],
    printed: PrintedSteps | None,
    *,
    steps: tuple[int, int],
    min_seconds: float,
    timeout_s: float,
    grace_s: float,
) -> float | None:
    """Seconds of a step of the command with one worker, after `steps[0]` and over at least `steps[1]` steps and
    `min_seconds`.

    None where it cannot be had: the command does not step in time, cannot be run, or starts several workers whatever
    it is told.
    """
    with closing(StepReceiver()) as receiver, closing(TrafficMeter(2)) as meter:
        told = {"SYNERGY_PROFILE_SOCKET": receiver.address, "PYTHONUNBUFFERED": "1"}
        environ = {**os.environ, **told, **of_one_worker(os.environ)}
        try:
            child = Child(command, environ, printed)
        except OSError:
            return None
        try:
            wanted = (*steps, min_seconds)
            samples = _samples(child, printed or receiver, meter, wanted, time.monotonic() + timeout_s)
        finally:
            child.stop(grace_s)
        if samples is None or meter.traffic(samples[-1].step - samples[0].step) is not None:
            return None
        return 1.0 / measure(samples).steps_per_second


def of_one_worker(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables with which a command starts one worker. A script that starts one for each GPU sees a single GPU."""
    devices = {name: environ[name].partition(",")[0] for name in _DEVICES if "," in environ.get(name, "")}
    return {**_ONE, "CUDA_VISIBLE_DEVICES": "0", **devices}


def _samples(
    child: Child,
    receiver: StepReceiver | PrintedSteps,
    meter: TrafficMeter,
    wanted: tuple[int, int, float],
    deadline: float,
) -> list[Sample] | None:
    warmup, steps, seconds = wanted
    found: list[Sample] = []
    while not _enough(found, max(steps, _LEAST_STEPS), seconds):
        sample = receiver.next(_POLL_S)
        if sample is not None and sample.step >= warmup and (not found or _is_later(sample, found[-1])):
            if not found:
                meter.begin(child.pid)
            found.append(sample)
        elif time.monotonic() > deadline or (sample is None and child.exit_code() is not None):
            return None
    meter.end(child.pid)
    return found


def _enough(found: list[Sample], steps: int, seconds: float) -> bool:
    return bool(found) and found[-1].step - found[0].step >= steps and found[-1].trained - found[0].trained >= seconds


def _is_later(sample: Sample, last: Sample) -> bool:
    return sample.step > last.step and sample.trained > last.trained
