"""Measures what is declared."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from performance.case import ratio
from performance.declared import Declaration, Declared
from performance.figures import MEMORY, PROCESSES, case_of, memory_of, of_processes

ATTEMPTS = 3


@dataclass(frozen=True)
class Measured:
    """A figure and its ratio: of the attempts the one that is nearest to the declared range."""

    declared: Declared
    ratio: float
    attempts: int

    @property
    def within(self) -> bool:
        """Whether the ratio is in its range."""
        return self.ratio in self.declared.range


def measure(declared: Declared, turns: int, processes: Mapping[str, Any]) -> Measured:
    """One figure. What is measured in this process is measured again before it counts as out of its range;
    `processes` is the report of `bench e2e`, which takes its own medians."""
    if declared.figure in PROCESSES:
        return Measured(declared, of_processes(declared.figure, processes), 1)
    if declared.figure in MEMORY:
        return nearest(declared, lambda: memory_of(declared.figure, declared.load))
    case = case_of(declared.figure, declared.load)
    return nearest(declared, lambda: ratio(case, turns))


def nearest(declared: Declared, again: Callable[[], float]) -> Measured:
    """Measure until a ratio is in the range, three times at most."""
    found: list[float] = []
    while len(found) < ATTEMPTS and not any(one in declared.range for one in found):
        found.append(again())
    return Measured(declared, min(found, key=lambda one: _beyond(declared, one)), len(found))


def _beyond(declared: Declared, one: float) -> float:
    return max(declared.range.least - one, one - declared.range.most, 0.0)


def of_bench(declaration: Declaration) -> dict[str, Any]:
    """The report of `bench e2e` under the declared load. It starts a devcluster. Raises CalledProcessError."""
    if not declaration.processes:
        return {}
    options = [f"--{name}={count}" for name, count in declaration.processes.items()]
    command = [sys.executable, "-m", "synergy_cli", "bench", "e2e", "--json", *options]
    report: dict[str, Any] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return report
