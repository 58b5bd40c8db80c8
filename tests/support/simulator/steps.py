"""What workers of a Dask cluster compute in tests: they import it by name."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from synergy_simulator.report.summary import Summary


@dataclass(frozen=True)
class Step:
    """A number to be squared, and a folder by which test and worker see each other."""

    number: int
    folder: str
    label: str = "a step"


def square(step: Step) -> int:
    """At once."""
    return step.number**2


def square_once_let(step: Step) -> int:
    """Says which process has it, and waits for a word, for a minute at most."""
    (Path(step.folder) / f"{step.number}.{os.getpid()}").touch()
    end = time.monotonic() + 60.0
    while not (Path(step.folder) / "go").exists() and time.monotonic() < end:
        time.sleep(0.02)
    return step.number**2


def end(step: Step) -> int:
    """Takes the worker along."""
    os._exit(step.number)


def without_times(found: Sequence[Summary]) -> list[Summary]:
    """All but how long it took, which is measured."""
    return [replace(one, metrics=replace(one.metrics, plan_mean_ms=0.0, plan_p99_ms=0.0, wall_s=0.0)) for one in found]
