"""The further run with one worker: long enough, and never at the cost of what was measured before."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from synergy_profiler.measurement import Sample
from synergy_profiler.traffic import alone
from synergy_profiler.traffic.alone import step_alone

HOW: dict[str, Any] = {"steps": (0, 10), "min_seconds": 2.0, "timeout_s": 30.0, "grace_s": 0.5}


class Told:
    """A receiver of samples that are there already, and then of none."""

    def __init__(self, samples: Iterator[Sample]) -> None:
        self._samples = samples

    def next(self, patience_s: float) -> Sample | None:
        return next(self._samples, None)


class Running:
    pid = 0

    def exit_code(self) -> int | None:
        return 0


class Meter:
    def begin(self, process: int) -> None:
        pass

    def end(self, process: int) -> None:
        pass


def samples(*told: Sample) -> list[Sample] | None:
    child: Any = Running()
    receiver: Any = Told(iter(told))
    meter: Any = Meter()
    return alone._samples(child, receiver, meter, (0, 10, 2.0), float("inf"))


def test_fast_steps_are_measured_for_many_periods_of_the_cpu_limit() -> None:
    found = samples(*(Sample(step, step * 0.01) for step in range(1000)))
    assert found is not None
    assert found[-1].trained - found[0].trained == pytest.approx(2.0)


def test_a_second_process_whose_clock_goes_back_is_left_out() -> None:
    told = [Sample(step, step * 1.0, paused=100.0 if step % 2 else 0.0) for step in range(40)]
    found = samples(*told)
    assert found is not None
    assert [one.step % 2 for one in found] == [0] * len(found)


def test_a_command_that_cannot_be_run_again_leaves_the_rest() -> None:
    assert step_alone(["/no/such/program"], None, **HOW) is None
    assert step_alone([sys.executable, "-c", ""], None, **HOW) is None
