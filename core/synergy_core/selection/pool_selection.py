"""Which jobs run this round, by GPU type: what the mechanisms with fungible CPU and memory start from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from synergy_core.model.placement import NodeAssignments
from synergy_core.model.pool import Reservations
from synergy_core.model.reasons import Reason
from synergy_core.selection.preemption.losses import Loss
from synergy_core.selection.queue_entry import QueueEntry
from synergy_core.selection.quotas import QuotaLedger
from synergy_core.selection.staying.islands import PackedPool


@dataclass(slots=True)
class PoolSelection:
    """The jobs that run on one pool."""

    reservations: Reservations
    quotas: QuotaLedger = field(default_factory=QuotaLedger)
    """What is taken of the quotas, on all pools."""
    staying: list[QueueEntry] = field(default_factory=list)
    """Running jobs that stay where they are."""
    pinned: set[QueueEntry] = field(default_factory=set)
    """Those of them that keep exactly what they hold, because pods of others leave no room to change it."""
    assigned: dict[QueueEntry, NodeAssignments] = field(default_factory=dict)
    """Newcomers with their nodes."""
    floating: list[QueueEntry] = field(default_factory=list)
    """Newcomers for which there is room somewhere in the pool."""
    before: PackedPool | None = None
    """What the last round gave the jobs that stay; None: it is worked out anew, and not remembered."""
    turned_away: list[QueueEntry] = field(default_factory=list)
    """Jobs that wait because the nodes that they are bound to are full."""


@dataclass(slots=True)
class Selection:
    """The jobs that run this round, by GPU type, and why the others wait, in the order of the queue."""

    pools: dict[str, PoolSelection]
    quotas: QuotaLedger = field(default_factory=QuotaLedger)
    waiting: list[tuple[QueueEntry, Reason]] = field(default_factory=list)
    losses: Mapping[str, Loss] = field(default_factory=dict)
    """Why running jobs lost their places, in that order."""
