"""A packing in the making: every step can be undone.

Each operation notes its reverse; `mark` and `undo_to` restore an earlier state. A mechanism can thus try something,
look at the outcome, and drop it.
"""

from collections.abc import Callable, Iterable, Mapping
from operator import gt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synergy_core.model.placement import Emptiness, NodeAssignments
from synergy_core.model.pool import Reservation, shares_of
from synergy_core.model.resources import Vector, times
from synergy_core.selection.pool_selection import PoolSelection
from synergy_core.selection.queue_entry import QueueEntry
from synergy_core.selection.staying.assigned import Assigned


class Packing:
    """Jobs on the nodes of one pool. `free[i]` is what node i has left of each resource beside GPUs."""

    def __init__(self, selection: PoolSelection) -> None:
        self.reservations = selection.reservations
        self.quotas = selection.quotas
        self.pool = selection.reservations.pool
        self.free: NDArray[np.int64] = np.array(self.pool.capacity, dtype=np.int64)
        self.assigned: dict[QueueEntry, Assigned] = {}
        self.on_node: list[list[QueueEntry]] = [[] for _ in self.pool.nodes]
        self._reverses: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        """Functions of a packing and what else they get. They do not hold this packing, which holds them: without a
        cycle it is freed as soon as it is of no use, though the garbage collector stands still during plans."""

    def emptiness(self) -> Emptiness:
        """How much each node has free: GPUs that can be reserved first, then the other resources."""
        emptiness: Emptiness = self.reservations.slots + self.free @ self.pool.weight
        return emptiness

    def emptiness_of(self, nodes: NDArray[np.intp]) -> Emptiness:
        """`emptiness` of some nodes."""
        emptiness: Emptiness = self.reservations.slots[nodes] + self.free[nodes] @ self.pool.weight
        return emptiness

    def affords(self, assignments: NodeAssignments, per_gpu: Vector) -> bool:
        """Whether the nodes have `per_gpu` left for each GPU."""
        return not any(any(map(gt, times(per_gpu, gpus), self.free[node].tolist())) for node, gpus in assignments)

    def may_have(self, entry: QueueEntry, assignments: NodeAssignments, per_gpu: Vector) -> bool:
        """Whether the job's quotas allow so much beside each of its GPUs."""
        return not entry.job.quotas or self.quotas.affords(entry, self.pool, shares_of(assignments, per_gpu))

    def assign(self, entry: QueueEntry, shares: Reservation, least: Reservation) -> None:
        """Give a job its shares."""
        self._occupy(entry, Assigned(shares, least))
        self._note(Packing._leave, entry)

    def take_over(self, known: Iterable[tuple[QueueEntry, Assigned]]) -> None:
        """Give jobs without quotas what an earlier packing gave them. It cannot be undone; `set_free` belongs to it."""
        for entry, assigned in known:
            self.assigned[entry] = assigned
            for node, _, _ in assigned.shares:
                self.on_node[node].append(entry)

    def set_free(self, known: Iterable[Mapping[int, Vector]]) -> None:
        """What these nodes have left."""
        rows = [row for one in known for row in one.items()]
        if rows:
            self.free[[node for node, _ in rows]] = [left for _, left in rows]

    def resize(self, entry: QueueEntry, shares: Reservation) -> None:
        """Change what a placed job has on its nodes."""
        before = self._vacate(entry)
        self._occupy(entry, Assigned(shares, before.least))
        self._note(Packing._put_back, entry, before)

    def bind(self, reservation: Reservation) -> None:
        """Turn GPUs reserved anywhere in the pool into a reservation on these nodes."""
        gpus = sum(count for _, count, _ in reservation)
        self._bind(reservation, gpus)
        self._note(Packing._unbind, reservation, gpus)

    def unbind(self, reservation: Reservation) -> None:
        """Turn a reservation on these nodes into GPUs reserved anywhere in the pool."""
        gpus = sum(count for _, count, _ in reservation)
        self._unbind(reservation, gpus)
        self._note(Packing._bind, reservation, gpus)

    def mark(self) -> int:
        """A point to come back to."""
        return len(self._reverses)

    def undo_to(self, mark: int) -> None:
        """Undo everything since the mark, the newest first."""
        while len(self._reverses) > mark:
            reverse, rest = self._reverses.pop()
            reverse(self, *rest)

    def _note(self, reverse: Callable[..., None], *rest: Any) -> None:
        self._reverses.append((reverse, rest))

    def _occupy(self, entry: QueueEntry, assigned: Assigned) -> None:
        self.assigned[entry] = assigned
        self.quotas.assign(entry, self.pool, assigned.shares)
        for node, _, amounts in assigned.shares:
            self._take(node, amounts)
            self.on_node[node].append(entry)

    def _vacate(self, entry: QueueEntry) -> Assigned:
        assigned = self.assigned.pop(entry)
        self.quotas.unassign(entry)
        for node, _, amounts in assigned.shares:
            self._take(node, times(amounts, -1))
            self.on_node[node].remove(entry)
        return assigned

    def _take(self, node: int, amounts: Vector) -> None:
        for dimension, amount in enumerate(amounts):
            self.free[node, dimension] -= amount  # a row of two or three: faster one by one

    def _leave(self, entry: QueueEntry) -> None:
        self._vacate(entry)

    def _put_back(self, entry: QueueEntry, assigned: Assigned) -> None:
        self._vacate(entry)
        self._occupy(entry, assigned)

    def _bind(self, reservation: Reservation, gpus: int) -> None:
        self.reservations.floating -= gpus
        self.reservations.take(reservation)

    def _unbind(self, reservation: Reservation, gpus: int) -> None:
        self.reservations.give_back(reservation)
        self.reservations.floating += gpus
