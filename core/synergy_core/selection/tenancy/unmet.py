"""Why a job waits that fits into a guarantee: what holds the GPUs that it would have by it.

The GPUs of a type are free, or a run has them. A run by a guarantee keeps them. Of the others each is *loose*, if a
guarantee may take its GPUs at a round's end, held by a *budget*, or *firm*: never preempted, a profile run, or still
protected.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from synergy_core.model.config import Mode
from synergy_core.model.pool import Reservations
from synergy_core.model.reasons import Reason
from synergy_core.selection.queue_entry import QueueEntry
from synergy_core.selection.round import Round
from synergy_core.selection.tenancy.ledger import Refusal, TenantLedger


def unmet(
    entry: QueueEntry, reservations: Reservations, running: Iterable[QueueEntry], tenants: TenantLedger, round_: Round
) -> Refusal | None:
    """Why the job does not have its guarantee on this GPU type; None if no guarantee has room for it there, or if
    something else is missing. `running` are the jobs that have GPUs of the type now."""
    gpu_type = reservations.pool.gpu_type
    index = tenants.could_guarantee(entry, gpu_type)
    if index is None:
        return None
    others = [one for one in running if not tenants.is_below(one, index)]
    others = [one for one in others if not tenants.is_by_guarantee(one, gpu_type)]
    reason, kept = _Holders(entry, reservations, others, round_).reason(round_.mode)
    if reason is None:
        return None
    return reason, {**tenants.facts(entry, index, gpu_type), "kept": f"{kept}"}


class _Holders:
    """GPUs of each node that are free, loose, held by a budget, or firm."""

    def __init__(
        self, entry: QueueEntry, reservations: Reservations, others: Iterable[QueueEntry], round_: Round
    ) -> None:
        self._entry = entry
        self._on_one_node = entry.place(reservations.pool) == "consolidate"
        self._free = np.where(entry.open_nodes(reservations.pool), reservations.slots, 0)
        self._idle = reservations.idle
        nothing = np.zeros_like(self._free)
        self._loose, self._budget, self._firm = nothing.copy(), nothing.copy(), nothing.copy()
        loose = []
        for one in others:
            if one.name in round_.spent:
                _add(self._budget, one)
            elif one.may_give_way:
                loose.append(one)
            else:
                _add(self._firm, one)
        loose.sort(key=lambda one: (-one.gpus, one.name))
        may = {unit[0].name for unit in round_.budgets.within([(one.job,) for one in loose])}
        for one in loose:
            _add(self._loose if one.name in may else self._budget, one)

    def reason(self, mode: Mode) -> tuple[Reason | None, int]:
        """Why the job waits, and how many GPUs are held so."""
        if self._fits(self._loose):
            return (Reason.GUARANTEE_AT_ROUND_END, int(self._loose.sum())) if mode == "fill" else (None, 0)
        if self._fits(self._loose, self._budget):
            return Reason.GUARANTEE_WAITS_FOR_BUDGETS, int(self._budget.sum())
        if self._fits(self._loose, self._budget, self._firm):
            return Reason.GUARANTEE_WAITS_FOR_RUNS, int(self._firm.sum())
        everything = self._idle + int((self._loose + self._budget + self._firm).sum())
        if self._on_one_node and everything >= self._entry.gpus:
            return Reason.GUARANTEE_SCATTERED, everything
        return None, 0

    def _fits(self, *held: NDArray[np.int64]) -> bool:
        total = np.sum(held, axis=0)
        most = (self._free + total).max() if self._on_one_node else self._idle + total.sum()
        return bool(most >= self._entry.gpus)


def _add(gpus: NDArray[np.int64], entry: QueueEntry) -> None:
    for node, count, _ in () if entry.held is None else entry.held.reservation:
        gpus[node] += count
