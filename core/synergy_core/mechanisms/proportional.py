"""Every job gets its GPU-proportional share (Synergy, table 2): what schedulers do that know nothing of sensitivity."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from synergy_core.mechanisms.packing.packer import Packer
from synergy_core.mechanisms.packing.statement import Packing
from synergy_core.model.config import Mode
from synergy_core.model.placement import NodeAssignments
from synergy_core.model.pool import Pool
from synergy_core.model.resources import Vector
from synergy_core.selection.pool_selection import PoolSelection
from synergy_core.selection.queue_entry import QueueEntry


class ProportionalDemands:
    """The share and nothing else."""

    def demand(self, entry: QueueEntry, pool: Pool) -> Vector | None:
        """Nothing above the share."""

    def least(self, entry: QueueEntry, pool: Pool, nodes: tuple[int, ...]) -> Vector:
        """The share of the nodes."""
        return entry.on(pool).proportional(nodes)

    def least_by_node(self, entry: QueueEntry, pool: Pool) -> NDArray[np.int64]:
        """The shares of all nodes."""
        return entry.on(pool).shares

    def advised(self, packing: Packing, entries: Sequence[QueueEntry]) -> Mapping[QueueEntry, NodeAssignments]:
        """None better than others."""
        return {}


def pack(selection: PoolSelection, mode: Mode) -> Packing:
    """Place all jobs of the selection at the proportional share."""
    packer = Packer(selection, ProportionalDemands())
    packing = packer.pack(mode)
    packer.recall.grown()
    packer.recall.remember()
    return packing
