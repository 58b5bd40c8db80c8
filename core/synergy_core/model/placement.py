"""On which nodes a job's GPUs go.

`room[i]` is the number of GPUs that the job could have on node i, `emptiness[i]` how much the node has free (the
smaller, the fuller). Ties go to the first node, nodes being sorted by name.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from synergy_core.model.snapshot import Placement

Rooms = NDArray[np.int64]
Emptiness = NDArray[np.float64]
NodeAssignments = tuple[tuple[int, int], ...]
"""(index of a node, GPUs there), each node once."""


def choose(placement: Placement, need: int, room: Rooms, emptiness: Emptiness) -> NodeAssignments | None:
    """Nodes for `need` GPUs as the job's placement wants them; None where they do not fit.

    `consolidate` is one node or nothing. `auto` is one node where one has the room, else the fewest. `pack` is the same
    here: whether these are too many is up to the caller. `spread` takes what is free on the fullest nodes first, which
    keeps whole nodes free for jobs that must be on one.
    """
    node = _fullest_with(room, need, emptiness)
    if placement == "spread" and need > 1:
        return _leftovers(need, room, emptiness)
    if node is not None:
        return ((node, need),)
    if placement == "consolidate" or need == 1:
        return None
    return _fewest(need, room, emptiness)


class NodeCounts:
    """How many nodes jobs need where nodes have this room; summed up once, for many jobs."""

    def __init__(self, room: Rooms) -> None:
        self._room = room
        self._together = np.cumsum(np.sort(room)[::-1])

    @cached_property
    def most(self) -> int:
        """Nodes that have any."""
        return int((self._room > 0).sum())

    def fewest(self, need: int) -> int:
        """The smallest number of nodes that have `need` GPUs together; one more than there are where they have not."""
        return int(np.searchsorted(self._together, need)) + 1


def nodes_needed(need: int, room: Rooms) -> int:
    """`NodeCounts.fewest` of room that changes, which is nowhere negative."""
    nodes, counts = 0, np.bincount(room).tolist()
    for gpus in range(len(counts) - 1, 0, -1):
        if gpus * counts[gpus] >= need:
            return nodes - (-need // gpus)
        nodes, need = nodes + counts[gpus], need - gpus * counts[gpus]
    return len(room) + 1


def _fullest_with(room: Rooms, need: int, emptiness: Emptiness) -> int | None:
    candidates = np.flatnonzero(room >= need)
    if candidates.size == 0:
        return None
    return int(candidates[np.argmin(emptiness[candidates])])


def _fewest(need: int, room: Rooms, emptiness: Emptiness) -> NodeAssignments | None:
    """The nodes with the most room, of equal ones the fullest, and for the rest the fullest node that has enough."""
    assignments: list[tuple[int, int]] = []
    left = np.flatnonzero(room > 0)
    while left.size:
        most = int(room[left].max())
        full = -(-need // most) - 1  # with one more node that has the most, there is enough
        nodes = left[room[left] == most]
        taken = _fullest(nodes, min(full, nodes.size), emptiness)
        assignments += [(node, most) for node in taken.tolist()]
        need -= most * taken.size
        left = np.setdiff1d(left, taken if taken.size == full < nodes.size else nodes, assume_unique=True)
        if taken.size == full and full < nodes.size:
            enough = left[room[left] >= need]
            last = int(enough[np.argmin(emptiness[enough])])
            return tuple(sorted([*assignments, (last, need)]))
    return None


def _fullest(nodes: NDArray[np.intp], number: int, emptiness: Emptiness) -> NDArray[np.intp]:
    """So many of the nodes, the fullest."""
    if number in (0, nodes.size):
        return nodes[:number]
    values = emptiness[nodes]
    bound = np.partition(values, number - 1)[number - 1]
    below = nodes[values < bound]
    return np.concatenate([below, nodes[values == bound][: number - below.size]])


def _leftovers(need: int, room: Rooms, emptiness: Emptiness) -> NodeAssignments | None:
    assignments: list[tuple[int, int]] = []
    for node in np.argsort(emptiness, kind="stable").tolist():
        taken = min(need, max(0, int(room[node])))
        if taken:
            assignments.append((node, taken))
            need -= taken
        if need == 0:
            return tuple(sorted(assignments))
    return None
