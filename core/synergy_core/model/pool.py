"""The nodes of one GPU type, what they have for planned jobs, and what of it is reserved."""

from collections.abc import Iterable, Sequence
from copy import copy
from operator import floordiv, gt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synergy_core.model.domains import Domains
from synergy_core.model.placement import NodeAssignments, NodeCounts, Rooms
from synergy_core.model.resources import Vector, further_of, larger, left_on, smaller, times, whole
from synergy_core.model.snapshot import Node

Reservation = tuple[tuple[int, int, Vector], ...]
"""(index of a node, GPUs, amounts of the other resources there), each node once."""
_NODE_LISTS: Final = 64
"""Jobs of few kinds name the same nodes; so many lists are remembered."""


def shares_of(assignments: NodeAssignments, per_gpu: Vector) -> Reservation:
    """The same amounts beside each GPU of an assignment."""
    return tuple((node, gpus, times(per_gpu, gpus)) for node, gpus in assignments)


class Pool:
    """The nodes of one GPU type, sorted by name. Never changed.

    `share[i]` is what one GPU's share of node i is (Synergy, appendix A: C_i / G_i), rounded down: all shares together
    never exceed the node. Where pods of others hold so much of the node that the GPUs left for us could not all have
    that, it is what is left divided by the GPUs that are left: every free GPU can always be used. A node that has less
    than one unit of a resource per GPU left, and a cordoned one, take nothing new (`open`).
    """

    def __init__(self, gpu_type: str, nodes: Sequence[Node]) -> None:
        self.gpu_type = gpu_type
        self.nodes = sorted(nodes, key=lambda node: node.name)
        self.index = {node.name: index for index, node in enumerate(self.nodes)}
        self.gpus = [max(0, node.gpus - node.gpus_used) for node in self.nodes]
        self.further = further_of(self.nodes)
        self.capacity = [left_on(node, self.further) for node in self.nodes]
        self.share = [
            _share(node.gpus, whole(node, self.further), gpus, left)
            for node, gpus, left in zip(self.nodes, self.gpus, self.capacity, strict=True)
        ]
        self.usable = [gpus > 0 and all(share) for gpus, share in zip(self.gpus, self.share, strict=True)]
        self.open = np.array([u and n.schedulable for u, n in zip(self.usable, self.nodes, strict=True)], dtype=bool)
        self.is_open: list[bool] = self.open.tolist()
        gpus_open = [gpus for gpus, is_open in zip(self.gpus, self.is_open, strict=True) if is_open]
        self.open_gpus = (sum(gpus_open), max(gpus_open, default=0))
        """GPUs of the open nodes: all together, and on one node at the most."""
        self.domains = Domains(self.nodes)
        """Which nodes are near each other."""
        self.counts = NodeCounts(np.array([node.gpus for node in self.nodes], dtype=np.int64))
        """By the GPUs of each node, whoever holds them."""
        self.open_counts = NodeCounts(np.where(self.open, self.gpus, 0))
        open_shares = [share for share, is_open in zip(self.share, self.is_open, strict=True) if is_open]
        self.best_share = larger(*(open_shares or self.share))
        self.least_share = smaller(*(open_shares or self.share))
        self.shares = np.array(self.share[:1] if len(set(self.share)) == 1 else self.share, dtype=np.int64)
        """`share`, nodes x dimensions; one row where all are alike."""
        self.limits_threads = any(node.client_thread_percent < 100 for node in self.nodes)
        """On some node, a job that does not share has less than all of a GPU's threads."""
        shared = np.array([node.replicas > 1 for node in self.nodes], dtype=bool)
        self.shared = shared if shared.any() and not shared.all() else None
        """Which nodes' GPUs several jobs may share; None where all nodes are alike in that."""
        self.is_uniform = (
            bool(self.nodes)
            and len({(*amounts, gpus) for amounts, gpus in zip(self.capacity, self.gpus, strict=True)}) == 1
            and len(self.shares) == 1
            and all(self.is_open)
            and not (self.domains or self.limits_threads or self.shared is not None)
        )
        """All nodes have the same left for planned jobs, and nothing sets one apart from another."""
        self.weight = 1.0 / (
            (len(self.best_share) + 1) * np.maximum(1, np.array(self.capacity, dtype=np.int64).max(axis=0))
        )
        """Makes what is free of a node, all resources together, a number below 1."""
        self.most_devices = {
            kind: max(n.devices_per_gpu for n in self.nodes if n.counted_as == kind)
            for kind in sorted({n.counted_as for n in self.nodes})
        }
        """What a quota counts for a GPU at the most, by the kind of limit."""
        self._most_per_gpu: dict[int, Vector] = {}
        self._named: dict[tuple[str, ...], NDArray[np.bool_]] = {}

    def named(self, names: tuple[str, ...]) -> NDArray[np.bool_]:
        """Which of the nodes have one of these names."""
        found = self._named.get(names)
        if found is None:
            found = np.zeros(len(self.nodes), dtype=bool)
            found[[self.index[name] for name in names if name in self.index]] = True
            if len(self._named) >= _NODE_LISTS:
                self._named.clear()
            found.setflags(write=False)
            self._named[names] = found
        return found

    def share_on(self, nodes: Iterable[int]) -> Vector:
        """The GPU-proportional share of a job on these nodes: the least of theirs, beside each GPU alike."""
        shares = [self.share[node] for node in nodes]
        return shares[0] if len(shares) == 1 else smaller(*shares)

    def most_per_gpu(self, gpus: int) -> Vector:
        """What each GPU of a job of `gpus` could have at the most: a whole node if it fits one, else its share."""
        if gpus not in self._most_per_gpu:
            self._most_per_gpu[gpus] = self._find_most_per_gpu(gpus)
        return self._most_per_gpu[gpus]

    def _find_most_per_gpu(self, gpus: int) -> Vector:
        largest = max(self.gpus)
        rooms = [
            tuple(amount // (gpus if gpus <= largest else max(1, own)) for amount in capacity)
            for capacity, own in zip(self.capacity, self.gpus, strict=True)
            if own >= min(gpus, largest)
        ]
        return larger(*rooms)


def _share(gpus: int, all_: Vector, gpus_left: int, left: Vector) -> Vector:
    if gpus_left == 0:
        return (0,) * len(left)
    return tuple(min(entry // gpus, rest // gpus_left) for entry, rest in zip(all_, left, strict=True))


class Reservations:
    """What is reserved on a pool's nodes: GPUs, and beside them at least the GPU-proportional share.

    Mechanisms may give a job more than its reservation, but can always take that back. So a job whose reservation fits
    can run. `slots[i]` is the number of GPUs of node i that can still be reserved with their share. `floating` counts
    the GPUs of jobs with room in the pool and no nodes yet.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.free_gpus = list(pool.gpus)
        self.free = [list(capacity) for capacity in pool.capacity]
        self.floating = 0
        self._left: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
        self._changed: set[int] = set()
        self._slots = [self._slots_of(index) for index in range(len(pool.nodes))]
        self.slots: Rooms = np.array(self._slots, dtype=np.int64)
        self.total = sum(self._slots)
        self._unheld = sum(gpus for gpus, is_open in zip(self.free_gpus, pool.is_open, strict=True) if is_open)

    def copy(self) -> "Reservations":
        """An independent copy with the same reservations."""
        other = copy(self)
        other.free_gpus = list(self.free_gpus)
        other.free = [list(free) for free in self.free]
        other._slots, other.slots = list(self._slots), self.slots.copy()
        other._left, other._changed = None, set()
        return other

    @property
    def unheld(self) -> int:
        """GPUs of open nodes that are not reserved, even if nothing is left beside them."""
        return self._unheld - self.floating

    @property
    def idle(self) -> int:
        """GPUs that can still be reserved."""
        return self.total - self.floating

    def fits(self, reservation: Reservation) -> bool:
        """Whether the reservation's nodes have what it takes; cordoned nodes count as well."""
        for node, gpus, amounts in reservation:
            if gpus > self.free_gpus[node] or any(map(gt, amounts, self.free[node])):
                return False
        return True

    def take(self, reservation: Reservation) -> None:
        """Take the reservation, whether or not it fits."""
        self._change(reservation, 1)

    def give_back(self, reservation: Reservation) -> None:
        """Undo `take`."""
        self._change(reservation, -1)

    def room(self, per_gpu: NDArray[np.int64]) -> Rooms:
        """GPUs that each open node can still reserve at `per_gpu[i]` (nodes x dimensions) of the other resources."""
        free_gpus, free = self.left()
        afforded = (free // np.maximum(1, per_gpu)).min(axis=1)
        room: Rooms = np.where(self.pool.open, np.minimum(free_gpus, afforded), 0)
        return room

    def stranded(self, per_gpu: NDArray[np.int64], gpus: int) -> Rooms:
        """GPUs of each node that nothing is left beside, once `gpus` at `per_gpu[i]` are reserved there."""
        free_gpus, free = self.left()
        left = free - per_gpu * gpus
        after = np.minimum(free_gpus - gpus, (left // np.maximum(1, self.pool.shares)).min(axis=1))
        stranded: Rooms = self.slots - gpus - np.maximum(0, after)
        return stranded

    def left(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """`free_gpus` and `free` as arrays, nodes x dimensions: not to be changed, and valid until the next change."""
        if self._left is None:
            self._left = np.array(self.free_gpus, dtype=np.int64), np.array(self.free, dtype=np.int64)
        else:
            for node in self._changed:
                self._left[0][node] = self.free_gpus[node]
                self._left[1][node] = self.free[node]
        self._changed.clear()
        return self._left

    def _change(self, reservation: Reservation, sign: int) -> None:
        for node, gpus, amounts in reservation:
            self.free_gpus[node] -= sign * gpus
            self._changed.add(node)
            free = self.free[node]
            for dimension, amount in enumerate(amounts):
                free[dimension] -= sign * amount
            if self.pool.is_open[node]:
                self._unheld -= sign * gpus
                before, after = self._slots[node], self._slots_of(node)
                if before != after:
                    self._slots[node] = self.slots[node] = after
                    self.total += after - before

    def _slots_of(self, node: int) -> int:
        if not self.pool.is_open[node]:
            return 0
        slots: int = min(self.free_gpus[node], *map(floordiv, self.free[node], self.pool.share[node]))
        return max(0, slots)
