"""Why a job waits that fits into a guarantee: what holds the GPUs that it would have by it.

The GPUs of a type are free, or a run has them. A run by a guarantee keeps them. Of the others each is *loose*, if a
guarantee may take its GPUs at a round's end, held by a *budget*, or *firm*: never preempted, a profile run, or still
protected.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from synergy_core.model.pool import Reservations
from synergy_core.model.reasons import Reason
from synergy_core.selection.queue_entry import QueueEntry
from synergy_core.selection.round import Round


class Holders:
    """GPUs of each node that are loose, held by a budget, or firm, of one GPU type."""

    def __init__(self, reservations: Reservations, others: Iterable[QueueEntry], round_: Round) -> None:
        self._reservations = reservations
        self._mode = round_.mode
        nothing = np.zeros(len(reservations.pool.nodes), dtype=np.int64)
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

    def reason(self, entry: QueueEntry) -> tuple[Reason, int] | None:
        """Why the job waits, which a guarantee has room for, and how many GPUs are held so; None if something else is
        missing."""
        if self._fits(entry, self._loose):
            return (Reason.GUARANTEE_AT_ROUND_END, self._open_to(entry, self._loose)) if self._mode == "fill" else None
        if self._fits(entry, self._loose, self._budget):
            return Reason.GUARANTEE_WAITS_FOR_BUDGETS, self._open_to(entry, self._budget)
        if self._fits(entry, self._loose, self._budget, self._firm):
            return Reason.GUARANTEE_WAITS_FOR_RUNS, self._open_to(entry, self._firm)
        everything = self._idle(entry) + self._open_to(entry, self._loose + self._budget + self._firm)
        if self._needs_one_node(entry) and everything >= entry.gpus:
            return Reason.GUARANTEE_SCATTERED, everything
        return None

    def _fits(self, entry: QueueEntry, *held: NDArray[np.int64]) -> bool:
        total = np.sum(held, axis=0)
        if not self._needs_one_node(entry):
            return self._idle(entry) + self._open_to(entry, total) >= entry.gpus
        room = np.where(entry.open_nodes(self._reservations.pool), self._reservations.slots + total, 0)
        return bool(room.max() >= entry.gpus)

    def _idle(self, entry: QueueEntry) -> int:
        return min(self._reservations.idle, self._open_to(entry, self._reservations.slots))

    def _open_to(self, entry: QueueEntry, gpus: NDArray[np.int64]) -> int:
        """Those on nodes that the job may be placed on: what runs on cordoned nodes leaves it nothing."""
        return int(gpus[entry.open_nodes(self._reservations.pool)].sum())

    def _needs_one_node(self, entry: QueueEntry) -> bool:
        return entry.place(self._reservations.pool) == "consolidate"


def _add(gpus: NDArray[np.int64], entry: QueueEntry) -> None:
    for node, count, _ in () if entry.held is None else entry.held.reservation:
        gpus[node] += count
