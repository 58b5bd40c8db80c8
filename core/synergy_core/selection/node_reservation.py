"""Nodes that are reserved for a job that has waited too long (Tiresias, section 3.2.3).

A promoted job is first in the queue, and a round displaces for it every job that may be displaced. Some jobs may not
be: those that are not preemptible, profile runs, and runs that are still protected (`preemption_protection`). If such
jobs kept entering wherever GPUs fall free, a job that needs many GPUs at once would wait for ever. So where the first
promoted job finds no room on a GPU type, nodes are reserved for it: newcomers that could not be displaced later do not
start there. Others may; they are displaced when the job is due.

The nodes are those that will be free first. The runs that hold the job off are taken away one by one, in the order of
their release, until it fits. A protected run is released when its protection ends; runs that go on to their own end
come last, the older ones first. Nothing is remembered from plan to plan: since no such newcomer starts on the nodes,
later plans choose the same nodes, or others that are free no later. Hence the bound: the job fits when the runs that
went on to their own end at its promotion have ended and one protection has passed, and it starts in the next round.

If one of the nodes waits for a run that goes on to its own end, protected runs may start there in the meantime. They
delay the job by no more than their protection.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from synergy_core.model.pool import Pool, Reservation, Reservations
from synergy_core.selection.diagnosis import choose_for, room_to_reserve
from synergy_core.selection.queue_entry import QueueEntry

Release = tuple[int, float]
"""When a run is released, the earliest first: (0, 0) at once, (1, moment) then, (2, start) at its own end."""


@dataclass(frozen=True, slots=True)
class NodeReservation:
    """Nodes of one GPU type that are reserved for a promoted job, by index."""

    nodes: frozenset[int]
    release: Release
    """When the last of the runs on them is released."""

    def bars(self, newcomer: QueueEntry) -> bool:
        """A newcomer there would hold the promoted job off for longer."""
        if self.release[0] == 2:
            return newcomer.keeps_its_gpus
        return newcomer.keeps_its_gpus or newcomer.least_run_s > 0.0


def reserved_from(newcomer: QueueEntry, reserved: Mapping[str, NodeReservation]) -> Mapping[str, frozenset[int]]:
    """The nodes, by GPU type, on which a newcomer must not start."""
    return {gpu_type: one.nodes for gpu_type, one in reserved.items() if one.bars(newcomer)}


def nodes_to_reserve(
    entry: QueueEntry, pool: Pool, reservations: Reservations, held: Iterable[tuple[QueueEntry, Reservation]]
) -> NodeReservation | None:
    """The nodes of a pool to reserve for a job that has no room; None where it would not fit on the empty pool.

    `reservations` is what is taken on the pool, `held` the part of it that running jobs have.
    """
    runs = sorted(((_release(one, entry), one.name, reservation) for one, reservation in held), key=lambda run: run[:2])
    enough = len(runs)
    nodes = _nodes_without(entry, pool, reservations, [reservation for _, _, reservation in runs])
    if nodes is None:
        return None
    low = 0
    while low < enough:
        middle = (low + enough) // 2
        found = _nodes_without(entry, pool, reservations, [reservation for _, _, reservation in runs[:middle]])
        if found is None:
            low = middle + 1
        else:
            enough, nodes = middle, found
    return NodeReservation(nodes, runs[enough - 1][0] if enough else (0, 0.0))


def _nodes_without(
    entry: QueueEntry, pool: Pool, reservations: Reservations, released: Iterable[Reservation]
) -> frozenset[int] | None:
    left = reservations.copy()
    for reservation in released:
        left.give_back(reservation)
    if left.idle < entry.gpus:
        return None
    assignments = choose_for(entry, pool, *room_to_reserve(entry, left))
    return None if assignments is None else frozenset(node for node, _ in assignments)


def _release(run: QueueEntry, entry: QueueEntry) -> Release:
    started = run.job.arrival_s if run.job.run_started_s is None else run.job.run_started_s
    if run.keeps_its_gpus or run.rank < entry.rank:
        return (2, started)
    return (1, started + run.least_run_s) if run.stays_for_now else (0, 0.0)
