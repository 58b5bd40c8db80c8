"""Rounds in a row of one leader, which remembers the plan before."""

import time
from dataclasses import dataclass
from statistics import median

from synergy_cli.bench.workload import the_round_after
from synergy_core.cache import Memory
from synergy_core.collector import collector_paused
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Snapshot
from synergy_core.plan import plan

_SETTLING = 2
"""Rounds after which what a plan remembers is what it remembers for good: jobs are placed in one, and stay in the
next."""
_MEASURED = 3


@dataclass(frozen=True, slots=True)
class NextRounds:
    """Processor seconds."""

    first: float
    """Of the first round, which remembers nothing."""
    seconds: float
    """Of a later one, the median."""


def next_rounds(snapshot: Snapshot, config: PlanConfig, *, seed: int) -> NextRounds:
    """Plans some rounds in a row, with 1 % of the running jobs replaced between them."""
    memory, spent = Memory(), list[float]()
    for index in range(1 + _SETTLING + _MEASURED):
        with collector_paused():
            began = time.process_time()
            result = plan(snapshot, config, memory)
            spent.append(time.process_time() - began)
        snapshot = the_round_after(snapshot, result, seed=seed + index)
    return NextRounds(spent[0], median(spent[1 + _SETTLING :]))
