"""A packing in the making: every step can be undone.

Each operation notes its reverse; `mark` and `undo_to` take the packing back to an earlier state, so that a mechanism
may try something, look at the outcome, and drop it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from operator import gt

import numpy as np
from numpy.typing import NDArray

from synergy_core.model.placement import Emptiness, NodeAssignments
from synergy_core.model.pool import Booking
from synergy_core.model.resources import Vector, smaller, split_down, times
from synergy_core.selection.pool_selection import PoolSelection
from synergy_core.selection.queue_entry import QueueEntry


@dataclass(frozen=True, slots=True)
class NodeAssignment:
    """Where a job is: what it has on each node, and the least that it can be cut down to there."""

    shares: Booking
    least: Booking

    @property
    def seats(self) -> NodeAssignments:
        return tuple((node, gpus) for node, gpus, _ in self.shares)

    @property
    def nodes(self) -> tuple[int, ...]:
        return tuple(node for node, _, _ in self.shares)

    @property
    def per_gpu(self) -> Vector:
        """What is beside each GPU: the same on every node of a seat that a mechanism made, else the least."""
        return smaller(*[split_down(amounts, gpus) for _, gpus, amounts in self.shares])


class Packing:
    """Jobs on the nodes of one pool. `free[i]` is what node i has left of each resource beside GPUs."""

    def __init__(self, selection: PoolSelection) -> None:
        self.reservations = selection.reservations
        self.quotas = selection.quotas
        self.pool = selection.reservations.pool
        self.free: NDArray[np.int64] = np.array(self.pool.capacity, dtype=np.int64)
        self.seated: dict[QueueEntry, NodeAssignment] = {}
        self.on_node: list[list[QueueEntry]] = [[] for _ in self.pool.nodes]
        self._reverses: list[Callable[[], None]] = []

    def emptiness(self) -> Emptiness:
        """How much each node has free: GPUs that can be promised first, then the other resources."""
        emptiness: Emptiness = self.reservations.slots + self.free @ self.pool.weight
        return emptiness

    def affords(self, seats: NodeAssignments, per_gpu: Vector) -> bool:
        """Whether the nodes have `per_gpu` left for each GPU."""
        return not any(any(map(gt, times(per_gpu, gpus), self.free[node].tolist())) for node, gpus in seats)

    def may_have(self, entry: QueueEntry, seats: NodeAssignments, per_gpu: Vector) -> bool:
        """Whether the job's quotas allow so much beside each of its GPUs."""
        return not entry.job.quotas or self.quotas.affords(entry, self.pool, shares_of(seats, per_gpu))

    def seat(self, entry: QueueEntry, shares: Booking, least: Booking) -> None:
        """Give a job its shares."""
        self._occupy(entry, NodeAssignment(shares, least))
        self._reverses.append(lambda: self._leave(entry))

    def resize(self, entry: QueueEntry, shares: Booking) -> None:
        """Change what a seated job has on its nodes."""
        before = self._vacate(entry)
        self._occupy(entry, NodeAssignment(shares, before.least))

        def reverse() -> None:
            self._vacate(entry)
            self._occupy(entry, before)

        self._reverses.append(reverse)

    def promise(self, booking: Booking) -> None:
        """Turn promised room somewhere into a promise on these nodes."""
        gpus = sum(count for _, count, _ in booking)
        self._settle_promise(booking, gpus)
        self._reverses.append(lambda: self._float_promise(booking, gpus))

    def unbind(self, booking: Booking) -> None:
        """Turn a promise on these nodes into promised room somewhere."""
        gpus = sum(count for _, count, _ in booking)
        self._float_promise(booking, gpus)
        self._reverses.append(lambda: self._settle_promise(booking, gpus))

    def mark(self) -> int:
        """A point to come back to."""
        return len(self._reverses)

    def undo_to(self, mark: int) -> None:
        """Undo everything since the mark, the newest first."""
        while len(self._reverses) > mark:
            self._reverses.pop()()

    def _occupy(self, entry: QueueEntry, seat: NodeAssignment) -> None:
        self.seated[entry] = seat
        self.quotas.seat(entry, self.pool, seat.shares)
        for node, _, amounts in seat.shares:
            self._take(node, amounts)
            self.on_node[node].append(entry)

    def _vacate(self, entry: QueueEntry) -> NodeAssignment:
        seat = self.seated.pop(entry)
        self.quotas.unseat(entry)
        for node, _, amounts in seat.shares:
            self._take(node, times(amounts, -1))
            self.on_node[node].remove(entry)
        return seat

    def _take(self, node: int, amounts: Vector) -> None:
        for dimension, amount in enumerate(amounts):
            self.free[node, dimension] -= amount  # a row of two or three: faster one by one

    def _leave(self, entry: QueueEntry) -> None:
        self._vacate(entry)

    def _settle_promise(self, booking: Booking, gpus: int) -> None:
        self.reservations.floating -= gpus
        self.reservations.take(booking)

    def _float_promise(self, booking: Booking, gpus: int) -> None:
        self.reservations.give_back(booking)
        self.reservations.floating += gpus


def shares_of(seats: NodeAssignments, per_gpu: Vector) -> Booking:
    """Shares with the same amounts beside each GPU."""
    return tuple((node, gpus, times(per_gpu, gpus)) for node, gpus in seats)
