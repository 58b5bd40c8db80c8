"""Places the selected jobs one by one, the largest demand first (Synergy, section 4.2)."""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from synergy_core.mechanisms.demotion import demote
from synergy_core.mechanisms.packing.recall import Recall
from synergy_core.mechanisms.packing.statement import Packing
from synergy_core.model.config import Mode
from synergy_core.model.placement import NodeAssignments, Rooms, nodes_needed
from synergy_core.model.pool import Pool, Reservation, shares_of
from synergy_core.model.resources import Vector, times
from synergy_core.selection.diagnosis import apart, choose_for, free_to, room_to_reserve
from synergy_core.selection.pool_selection import PoolSelection
from synergy_core.selection.queue_entry import QueueEntry


class Demands(Protocol):
    """What a mechanism gives a job, in amounts per GPU."""

    def demand(self, entry: QueueEntry, pool: Pool) -> Vector | None:
        """What the job should have if that fits; None where there is nothing above the least."""

    def least(self, entry: QueueEntry, pool: Pool, nodes: tuple[int, ...]) -> Vector:
        """What the job must have on these nodes; never above what is reserved for it there."""

    def least_by_node(self, entry: QueueEntry, pool: Pool) -> NDArray[np.int64]:
        """`least` of each node alone (nodes x dimensions), or a lower bound of it."""

    def advised(self, packing: Packing, entries: Sequence[QueueEntry]) -> Mapping[QueueEntry, NodeAssignments]:
        """Better nodes for some jobs that may run on any; taken where they have the GPUs."""


class Packer:
    """Packs one pool's selection."""

    def __init__(self, selection: PoolSelection, demands: Demands) -> None:
        self._selection = selection
        self._demands = demands
        self._pool = selection.reservations.pool
        self._packing = Packing(selection)
        self._advised: Mapping[QueueEntry, NodeAssignments] = {}
        self.recall: Final = Recall(selection.before, self._packing)
        """What the last round tells of jobs that stay."""

    def pack(self, mode: Mode) -> Packing:
        """Place all jobs: those whose nodes are given, then those that may run on any nodes."""
        chosen = self._selection
        bound = {
            entry: assignments
            for entry, assignments in chosen.assigned.items()
            if entry.on(self._pool).hard or entry.pods_matter
        }
        loose = {entry: assignments for entry, assignments in chosen.assigned.items() if entry not in bound}
        for entry in chosen.staying:
            if mode == "fill" or entry.is_profile_run or entry in chosen.pinned:
                self._leave(entry)
            else:
                bound[entry] = _nodes_held(entry)
        self._settle_all(self._not_recalled(bound))
        self.recall.note_settled()
        mark = self._packing.mark()
        for entry, assignments in loose.items():
            self._packing.unbind(entry.on(self._pool).reservation(assignments))
        self._advised = self._demands.advised(self._packing, [*chosen.floating, *loose])
        if not self._place_all([*chosen.floating, *loose]) or (loose and self._shuts_out_needlessly()):
            self._packing.undo_to(mark)
            self._advised = {}
            self._settle_all(loose)
            if not self._place_all(chosen.floating):
                raise RuntimeError(f"a job with reserved GPUs of {self._pool.gpu_type} cannot be placed")
        return self._packing

    def _in_order(self, entries: list[QueueEntry]) -> list[QueueEntry]:
        if len(entries) < 2:
            return entries

        def size(entry: QueueEntry) -> tuple[object, ...]:
            demand = self._demands.demand(entry, self._pool) or self._pool.best_share
            is_advised = entry in self._advised
            return (not is_advised, -entry.gpus, *times(demand, -entry.gpus), entry.name)

        return sorted(entries, key=size)

    # Jobs whose nodes are given

    def _leave(self, entry: QueueEntry) -> None:
        """Place a job of fill mode, a profile run or a pinned job with what it holds; it gets nothing more."""
        held: Reservation = entry.held.reservation if entry.held is not None else ()
        self._packing.assign(entry, held, entry.info.cut_down)

    def _not_recalled(self, bound: dict[QueueEntry, NodeAssignments]) -> dict[QueueEntry, NodeAssignments]:
        """The jobs with these nodes that are not settled as in the last round."""
        newcomers = self._selection.assigned
        beside = [node for entry, nodes in bound.items() if entry in newcomers for node, _ in nodes]
        beside += [node for assigned in self._packing.assigned.values() for node in assigned.nodes]
        settled = self.recall.settle((entry for entry in bound if entry not in newcomers), beside)
        return {entry: nodes for entry, nodes in bound.items() if entry not in settled}

    def _settle_all(self, bound: dict[QueueEntry, NodeAssignments]) -> None:
        for entry in self._in_order(list(bound)):
            if not self._settle(entry, bound[entry]):
                raise RuntimeError(f"{entry.name} does not fit on the nodes that are reserved for it")

    def _settle(self, entry: QueueEntry, assignments: NodeAssignments) -> bool:
        """Place a job on the given nodes: with its demand, else with its least, else by demoting others there."""
        nodes = tuple(node for node, _ in assignments)
        demand = self._demands.demand(entry, self._pool)
        least = self._demands.least(entry, self._pool, nodes)
        if (
            demand is not None
            and self._packing.affords(assignments, demand)
            and self._packing.may_have(entry, assignments, demand)
        ):
            self._packing.assign(entry, shares_of(assignments, demand), shares_of(assignments, least))
            return True
        if self._packing.affords(assignments, least) or demote(self._packing, assignments, least):
            self._packing.assign(entry, shares_of(assignments, least), shares_of(assignments, least))
            return True
        return False

    # Jobs that may go anywhere

    def _place_all(self, entries: list[QueueEntry]) -> bool:
        return all(self._place(entry) for entry in self._in_order(entries))

    def _shuts_out_needlessly(self) -> bool:
        """Whether a job waits that would have room beside the nodes which the others ended up on."""
        reservations = self._packing.reservations
        return any(
            choose_for(entry, self._pool, *room_to_reserve(entry, reservations)) is not None
            for entry in self._selection.turned_away
        )

    def _place(self, entry: QueueEntry) -> bool:
        """Find nodes: the advised ones, else where the demand fits, else where the least fits, else by GPUs alone."""
        slots = self._slots(entry)
        advised = self._advised.get(entry, ())
        if advised and all(slots[node] >= gpus for node, gpus in advised):
            return self._bound(entry, advised)
        demand = self._demands.demand(entry, self._pool)
        assignments = None if demand is None else self._find(entry, slots, np.array(demand, dtype=np.int64))
        if assignments is None:
            assignments = self._find(entry, slots, self._demands.least_by_node(entry, self._pool))
        if assignments is None:
            assignments = choose_for(entry, self._pool, slots, self._packing.emptiness())
        return assignments is not None and self._bound(entry, assignments)

    def _bound(self, entry: QueueEntry, assignments: NodeAssignments) -> bool:
        self._packing.bind(entry.on(self._pool).reservation(assignments))
        return self._settle(entry, assignments)

    def _slots(self, entry: QueueEntry) -> Rooms:
        slots = self._packing.reservations.slots
        anywhere = entry.job.nodes is None and not entry.reserved
        return slots if anywhere else np.where(free_to(entry, self._pool), slots, 0)

    def _find(self, entry: QueueEntry, slots: Rooms, per_gpu: NDArray[np.int64]) -> NodeAssignments | None:
        """Nodes that can give `per_gpu` (one vector, or one per node), no more of them than the GPUs force."""
        place = entry.place(self._pool)
        if entry.gpus == 1 or place != "spread":
            node = self._fullest(entry, slots, per_gpu)
            if node is not None or entry.gpus == 1 or place == "consolidate":
                return None if node is None else ((node, entry.gpus),)
        room = np.minimum(slots, (self._packing.free // per_gpu).min(axis=1))
        assignments = choose_for(entry, self._pool, room, self._packing.emptiness())
        near = self._pool.gpu_type in entry.nearness
        if assignments is None or place == "spread" or near or len(assignments) == 1:
            return assignments
        return assignments if len(assignments) <= nodes_needed(entry.gpus, slots) else None

    def _fullest(self, entry: QueueEntry, slots: Rooms, per_gpu: NDArray[np.int64]) -> int | None:
        """The node that `choose_for` chooses if one can give `per_gpu` to all GPUs. Looks closely at those only that
        have the GPUs: most nodes of a busy pool have none."""
        nodes = np.flatnonzero(slots >= entry.gpus)
        amounts = per_gpu * entry.gpus
        for dimension in range(amounts.shape[-1]):
            needed = amounts[..., dimension] if amounts.size == amounts.shape[-1] else amounts[nodes, dimension]
            nodes = nodes[self._packing.free[nodes, dimension] >= needed]
        if nodes.size == 0:
            return None
        emptiness = apart(entry, self._pool, self._packing.emptiness_of(nodes), nodes)
        return int(nodes[np.argmin(emptiness)])


def _nodes_held(entry: QueueEntry) -> NodeAssignments:
    return entry.held.assignments if entry.held is not None else ()
