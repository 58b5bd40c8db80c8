"""Which nodes of a GPU type are near each other: racks, blocks, NVLink domains."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from synergy_core.model.placement import Emptiness, NodeAssignments, Rooms, choose
from synergy_core.model.snapshot import Node, Placement

Members = NDArray[np.int64]
"""Indexes of the nodes of a domain."""


class Domains:
    """The domains of several nodes, level by level, the narrowest first. False where nodes name none."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._levels = list(_levels(nodes))

    def __bool__(self) -> bool:
        return bool(self._levels)

    def choose(
        self, placement: Placement, need: int, room: Rooms, emptiness: Emptiness, most_nodes: int
    ) -> NodeAssignments | None:
        """At most so many nodes, all in the narrowest domain that has the room; None where no domain has.

        Of several domains of a level it takes the one with the least room, which keeps the others whole.
        """
        for level in self._levels:
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


def _levels(nodes: Sequence[Node]) -> Iterator[list[Members]]:
    for depth in range(max((len(node.domains) for node in nodes), default=0), 0, -1):
        members: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for index, node in enumerate(nodes):
            if len(node.domains) >= depth:
                members[node.domains[:depth]].append(index)
        several = [np.array(members[name]) for name in sorted(members) if len(members[name]) > 1]
        if several:
            yield several
