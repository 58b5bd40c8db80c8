"""What a mechanism gets and what it answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from synergy_core.mechanisms.packing.statement import Packing
from synergy_core.model.reasons import Reason
from synergy_core.selection.preemption.losses import Loss
from synergy_core.selection.queue_entry import QueueEntry
from synergy_core.selection.round import Round


@dataclass(frozen=True, slots=True)
class Outcome:
    """Which jobs run where with what, and why the others wait, in the order of the queue."""

    packings: list[Packing] = field(default_factory=list)
    waiting: list[tuple[QueueEntry, Reason]] = field(default_factory=list)
    full: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Name and numbers of the quota that a job waits for, by job."""
    losses: Mapping[str, Loss] = field(default_factory=dict)
    """Why running jobs lost their places, in that order. Some got others."""


Mechanism = Callable[[Round], Outcome]
"""Allocates one round."""
