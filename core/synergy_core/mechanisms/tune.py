"""Synergy-Tune (Synergy, section 4.2).

The jobs are taken by GPU, then CPU, then memory demand, the largest first. Each goes to the server with the least free
resources that still fits its demand vector, or to the fewest servers. If it fits nowhere, its demand is switched to the
GPU-proportional share. If that does not fit either, servers are chosen by their GPUs alone, and just as many jobs there
as needed are switched to their proportional share (`demotion`).

Where the paper leaves room:

* Switching to the proportional share means switching to the least that is as fast: what a job cannot use of its share
  goes to others.
* A job is split only where its GPUs force it, never for more CPU or memory: its matrix holds for a job on one node.
* Jobs that stay from the last round keep their nodes, and are placed before newcomers.
* What is left over after packing goes to jobs below their demand (`growth`).
* Jobs that need one node or certain nodes are packed like all others. If they then do not all fit, or leave room that
  another such job waits for, the packing is undone, and they get the nodes that were found when they were selected.
"""

from collections.abc import Container, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from synergy_core.mechanisms.growth import grow
from synergy_core.mechanisms.packing.packer import Packer
from synergy_core.mechanisms.packing.statement import Packing
from synergy_core.model.config import Mode
from synergy_core.model.placement import NodeAssignments
from synergy_core.model.pool import Pool
from synergy_core.model.resources import Vector, smaller, split_down
from synergy_core.selection.pool_selection import PoolSelection
from synergy_core.selection.queue_entry import QueueEntry


class TuneDemands:
    """First the demand vector, then the least that is as fast as the proportional share."""

    def demand(self, entry: QueueEntry, pool: Pool) -> Vector | None:
        """The demand vector."""
        return entry.on(pool).demand

    def least(self, entry: QueueEntry, pool: Pool, nodes: tuple[int, ...]) -> Vector:
        """The least that is as fast as the share of the nodes."""
        return entry.on(pool).floor(nodes)

    def least_by_node(self, entry: QueueEntry, pool: Pool) -> NDArray[np.int64]:
        """The shares of all nodes without what the job surely cannot use."""
        return entry.on(pool).lean_shares

    def advised(self, packing: Packing, entries: Sequence[QueueEntry]) -> Mapping[QueueEntry, NodeAssignments]:
        """None better than others."""
        return {}


def pack(selection: PoolSelection, mode: Mode) -> Packing:
    """Place all jobs of the selection; see the module."""
    packer = Packer(selection, TuneDemands())
    packing = packer.pack(mode)
    grow(packing, _may_grow(packing, selection, mode, packer.recall.grown()))
    packer.recall.remember()
    return packing


def _may_grow(
    packing: Packing, selection: PoolSelection, mode: Mode, grown: Container[QueueEntry]
) -> dict[QueueEntry, Vector]:
    """The most per GPU that each job may get, by job. Jobs in `grown` have it already and are left out.

    In fill mode that is what a job held before it was cut down: the room for a newcomer is made no larger than needed.
    """
    limits = {entry: entry.on(packing.pool).demand for entry in packing.assigned if entry not in grown}
    if mode == "fill":
        for entry in selection.staying:
            del limits[entry]
            held = entry.held
            if held is not None and packing.assigned[entry].shares != held.reservation:
                limits[entry] = smaller(*(split_down(amounts, gpus) for _, gpus, amounts in held.reservation))
    return limits
