"""What a mechanism gets and what it answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from synergy_core.mechanisms.statement import Packing
from synergy_core.model.config import Mode
from synergy_core.model.pool import Pool
from synergy_core.model.reasons import Reason
from synergy_core.selection.queue_entry import QueueEntry
from synergy_core.selection.quotas import NO_QUOTAS, Quotas
from synergy_core.selection.scheduling_queue import SchedulingQueue


@dataclass(frozen=True, slots=True)
class Round:
    """What is to be dealt out, and the line of those who want it."""

    line: SchedulingQueue
    pools: Sequence[Pool]
    """The nodes, by GPU type."""
    mode: Mode
    profile_gpus: int
    """What all profile runs together may hold; one may run in any case."""
    explain: bool = True
    """False: jobs behind the point of the line where nothing is left need not be in `Outcome.waiting`."""
    quotas: Quotas = NO_QUOTAS

    def in_order(self, first: Sequence[str]) -> "Round":
        """The same with these jobs at the head of the line, in this order."""
        return replace(self, line=self.line.led_by(first))


@dataclass(slots=True)
class Outcome:
    """Who runs where with what, and why the others wait, in the order of the line."""

    packings: list[Packing] = field(default_factory=list)
    waiting: list[tuple[QueueEntry, Reason]] = field(default_factory=list)
    full: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Name and numbers of the quota that a job waits for, by job."""


Mechanism = Callable[[Round], Outcome]
