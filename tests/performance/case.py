"""Processor time of some work over that of its reference, measured by turns."""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from synergy_core.collector import collector_paused

_LEAST_S = 0.002
"""A shorter call is repeated until it takes so long."""


@dataclass(frozen=True)
class Case:
    """Two calls. On a machine that other work keeps busy both slow down alike."""

    work: Callable[[], object]
    reference: Callable[[], object]


def ratio(case: Case, turns: int) -> float:
    """The median of so many turns, each with the work and the reference one after the other."""
    calls = (case.work, case.reference)
    times = [_times(call) for call in calls]
    found = []
    for _ in range(turns):
        work, reference = (_seconds(call, count) for call, count in zip(calls, times, strict=True))
        found.append(work / reference)
    return median(found)


def _times(call: Callable[[], object]) -> int:
    """How often a call is repeated. The first one warms up what is loaded or compiled once."""
    call()
    return max(1, round(_LEAST_S / max(_seconds(call, 1), 1e-9)))


def _seconds(call: Callable[[], object], count: int) -> float:
    """Processor seconds of one call."""
    gc.collect()
    with collector_paused():
        began = time.process_time()
        for _ in range(count):
            call()
        return (time.process_time() - began) / count
