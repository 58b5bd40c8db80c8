"""Nodes on which the same jobs stay as in the last round.

Jobs of one packing meet only on their nodes. So the nodes of the jobs that stay fall into islands: two nodes are of one
island if a job has both. What a mechanism gives the jobs of an island depends on these jobs and nodes alone, as long as
no other job is placed there. Where the same jobs stay, the last round tells it.

Quotas join jobs of any nodes. A cluster that has some is packed without a memory.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from synergy_core.model.pool import Pool
from synergy_core.model.resources import Vector
from synergy_core.selection.queue_entry import QueueEntry
from synergy_core.selection.staying.assigned import Assigned

Key = frozenset[object]
"""`JobInfo.lasting` of the jobs of an island."""


@dataclass(slots=True, eq=False)
class Island:
    """Jobs that stay, and their nodes, which no other job that stays has."""

    entries: list[QueueEntry] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)

    @property
    def key(self) -> Key:
        """What is the same in the next round where the same jobs stay."""
        return frozenset([entry.info.lasting for entry in self.entries])


@dataclass(frozen=True, slots=True)
class Packed:
    """What the jobs of an island have, by `JobInfo.lasting`, and what each of its nodes has left."""

    assigned: Mapping[object, Assigned]
    free: Mapping[int, Vector]


@dataclass(frozen=True, slots=True)
class PackedIsland:
    """An island in one round."""

    settled: Packed
    """Before jobs were placed on other nodes."""
    grown: Packed
    """In the end."""


class PackedPool:
    """What the last round gave on one pool under one mechanism, by island."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.islands: Mapping[Key, PackedIsland] = {}


class PackedRounds:
    """What the last round gave, by mechanism and GPU type. It holds for the same pools only."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], PackedPool] = {}

    def of(self, mechanism: str, pools: Sequence[Pool]) -> Mapping[str, PackedPool]:
        """What is known of these pools, by GPU type: nothing where the nodes have changed."""
        found = {pool.gpu_type: self._known.get((mechanism, pool.gpu_type), PackedPool(pool)) for pool in pools}
        for pool in pools:
            if found[pool.gpu_type].pool is not pool:
                found[pool.gpu_type] = PackedPool(pool)
        self._known = {(mechanism, gpu_type): one for gpu_type, one in found.items()}
        return found


def islands_of(entries: Iterable[QueueEntry]) -> list[Island]:
    """The islands of running jobs."""
    at: dict[int, Island] = {}
    for entry in entries:
        nodes = [] if entry.held is None else [node for node, _ in entry.held.assignments]
        island = Island()
        for other in [at[node] for node in nodes if node in at]:
            if other is not island and at[other.nodes[0]] is other:
                island = _joined(island, other, at)
        island.entries.append(entry)
        for node in nodes:
            if at.get(node) is not island:
                at[node] = island
                island.nodes.append(node)
    return list({id(island): island for island in at.values()}.values())


def _joined(one: Island, other: Island, at: dict[int, Island]) -> Island:
    """The larger one, with the entries and nodes of the other."""
    large, small = (one, other) if len(one.nodes) >= len(other.nodes) else (other, one)
    large.entries += small.entries
    large.nodes += small.nodes
    for node in small.nodes:
        at[node] = large
    return large
