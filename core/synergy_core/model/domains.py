"""Which nodes of a GPU type are near each other: racks, blocks, NVLink domains.

The *depth* of some nodes is the number of domains that they share, counted from the widest: 0 for nodes that share
none, and one more than any node has domains for a single node.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from synergy_core.model.placement import Emptiness, NodeAssignments, NodeCounts, Rooms, choose
from synergy_core.model.snapshot import Node, Placement

Members = NDArray[np.int64]
"""Indexes of the nodes of a domain."""


class Domains:
    """The domains of several nodes, level by level, the narrowest first. False where nodes name none."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._names = [node.domains for node in nodes]
        self._bytes_per_s = [node.domain_bytes_per_s for node in nodes]
        self.deepest = max((len(names) for names in self._names), default=0)
        """Domains of a node at the most."""
        self._levels = dict(_levels(nodes))

    def __bool__(self) -> bool:
        return bool(self._levels)

    @property
    def depths(self) -> Sequence[int]:
        """Depths at which nodes are together, the narrowest first."""
        return tuple(self._levels)

    def depth_of(self, nodes: Iterable[int]) -> int:
        """The depth of some nodes, by index."""
        first, *others = nodes
        if not others:
            return self.deepest + 1
        shared = len(self._names[first])
        for other in others:
            names = self._names[other]
            while self._names[first][:shared] != names[:shared]:
                shared -= 1
        return shared

    def holding(self, need: int, room: Rooms, most_nodes: int) -> int:
        """The depth of the narrowest place that holds `need` GPUs on at most so many nodes with this room."""
        if int(room.max(initial=0)) >= need:
            return self.deepest + 1
        for depth, level in self._levels.items():
            enough = (room[members] for members in level if int(room[members].sum()) >= need)
            if any(NodeCounts(of_domain).fewest(need) <= most_nodes for of_domain in enough):
                return depth
        return 0

    def most_nodes(self, depth: int, need: int, room: Rooms) -> int:
        """Nodes that `need` GPUs could get in one domain of this depth at the worst; 0 where none holds them."""
        level = self._levels.get(depth, ()) if depth else (np.arange(len(room)),)
        holding = (members for members in level if int(room[members].sum()) >= need)
        return max((min(need, int((room[members] > 0).sum())) for members in holding), default=0)

    def is_whole(self, depth: int) -> bool:
        """Whether one domain of this depth has all nodes: none of them are farther apart."""
        return any(len(members) == len(self._names) for members in self._levels.get(depth, ()))

    def bytes_per_s(self, depth: int) -> float:
        """The slowest link between nodes of one domain of this depth; 0 where one is not known."""
        links = (links[depth - 1] if len(links) >= depth else 0.0 for links in self._bytes_per_s)
        return min(links, default=0.0) if depth else 0.0

    def choose(
        self,
        placement: Placement,
        need: int,
        room: Rooms,
        emptiness: Emptiness,
        limits: tuple[int, int],
    ) -> NodeAssignments | None:
        """At most so many nodes of at least such a depth (`limits`), in the narrowest domain that has the room; None
        where no domain has.

        Of several domains of a level it takes the one with the least room, which keeps the others whole.
        """
        most_nodes, least_depth = limits
        for depth, level in self._levels.items():
            if depth < least_depth:
                break
            found = []
            for index, members in enumerate(level):
                total = int(room[members].sum())
                if total < need:
                    continue
                inside = np.zeros_like(room)
                inside[members] = room[members]
                assignments = choose(placement, need, inside, emptiness)
                if assignments is not None and len(assignments) <= most_nodes:
                    found.append((total, index, assignments))
            if found:
                return min(found)[2]
        return None


def _levels(nodes: Sequence[Node]) -> Iterator[tuple[int, list[Members]]]:
    for depth in range(max((len(node.domains) for node in nodes), default=0), 0, -1):
        members: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for index, node in enumerate(nodes):
            if len(node.domains) >= depth:
                members[node.domains[:depth]].append(index)
        several = [np.array(members[name]) for name in sorted(members) if len(members[name]) > 1]
        if several:
            yield depth, several
