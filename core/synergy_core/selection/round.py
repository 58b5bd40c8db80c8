"""One round: the pools whose GPUs it allocates, the queue of the jobs that want them, and its limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from synergy_core.model.config import Mode
from synergy_core.model.pool import Pool
from synergy_core.model.tenant_tree import NO_TENANTS, TenantTree
from synergy_core.selection.preemption.budgets import NO_BUDGETS, TenantBudgets
from synergy_core.selection.quotas import NO_QUOTAS, Quotas
from synergy_core.selection.scheduling_queue import SchedulingQueue
from synergy_core.selection.staying.islands import PackedPool


@dataclass(frozen=True, slots=True)
class Round:
    """One round of one plan."""

    queue: SchedulingQueue
    pools: Sequence[Pool]
    """The nodes, by GPU type."""
    mode: Mode
    profile_gpus: int
    """GPUs that all profile runs together may hold; one of them may run in any case."""
    explain: bool = True
    """False: jobs below the point of the queue where nothing is left need no reason why they wait."""
    quotas: Quotas = NO_QUOTAS
    tenants: TenantTree = NO_TENANTS
    fair: bool = False
    """Beyond guarantees, the tenant that borrows least comes first; else the order of the queue holds."""
    budgets: TenantBudgets = NO_BUDGETS
    spent: frozenset[str] = frozenset()
    """Running jobs that are protected because a preemption budget is spent."""

    packed: Mapping[str, PackedPool] = field(default_factory=dict)
    """What the last round gave, by GPU type, under the same mechanism; not of types that are missing."""

    def in_order(self, first: Sequence[str]) -> "Round":
        """The same with these jobs at the head of the queue, in this order."""
        return replace(self, queue=self.queue.led_by(first), fair=False)
