"""Processor time of some work over that of its reference, measured by turns."""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

from synergy_core.collector import collector_paused

_LEAST_S = 0.002
"""A shorter call is repeated until it takes so long."""


@dataclass(frozen=True)
class Case:
    """Two calls. On a machine that other work keeps busy both slow down alike."""

    work: Callable[[], object]
    reference: Callable[[], object]


def ratio(case: Case, turns: int) -> float:
    """The least time of the work over the least of the reference, of so many turns with one of each: other work on the
    machine only adds to a time."""
    calls = (case.work, case.reference)
    times = [_times(call) for call in calls]
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        for seconds, call, count in zip(found, calls, times, strict=True):
            seconds.append(_seconds(call, count))
    return min(found[0]) / min(found[1])


def _times(call: Callable[[], object]) -> int:
    """How often a call is repeated. The first one warms up what is loaded or compiled once. Of three more the shortest
    counts: one that is interrupted would look too long to be repeated."""
    call()
    return max(1, round(_LEAST_S / max(min(_seconds(call, 1) for _ in range(3)), 1e-9)))


def _seconds(call: Callable[[], object], count: int) -> float:
    """Processor seconds of one call."""
    gc.collect()
    with collector_paused():
        began = time.process_time()
        for _ in range(count):
            call()
        return (time.process_time() - began) / count
