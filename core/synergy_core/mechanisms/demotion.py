"""Switches jobs to their proportional share to make room for another (Synergy, section 4.2, step 2a)."""

from synergy_core.mechanisms.packing.statement import Packing
from synergy_core.model.placement import NodeAssignments
from synergy_core.model.resources import Vector, times, within
from synergy_core.selection.queue_entry import QueueEntry


def demote(packing: Packing, assignments: NodeAssignments, per_gpu: Vector) -> bool:
    """Cut down just as many jobs on the nodes of `assignments` as are needed for `per_gpu` beside each GPU there.

    A job that had more CPU and less memory than its share takes the memory of its share when it is cut down; where that
    is too much for a node, others are cut down there too. If even all of them would not do, nothing is changed and the
    answer is False. A node elsewhere that had given more than it has already (its GPUs or memory are fewer by now) only
    must not give still more.
    """
    mark = packing.mark()
    before: dict[int, Vector] = {}
    wanted = {node: times(per_gpu, gpus) for node, gpus in assignments}
    to_check = [node for node, _ in assignments]
    while to_check:
        node = to_check[-1]
        missing = _missing(packing, node, wanted.get(node) or before[node])
        if not any(missing):
            to_check.pop()
            continue
        victim = _victim(packing, node, missing)
        if victim is None:
            packing.undo_to(mark)
            return False
        assigned = packing.assigned[victim]
        others = [other for other in assigned.nodes if other != node]
        for other in others:
            before.setdefault(other, tuple(min(0, left) for left in packing.free[other].tolist()))
        packing.resize(victim, assigned.least)
        to_check.extend(others)
    return True


def _missing(packing: Packing, node: int, wanted: Vector) -> Vector:
    """What the node lacks to have `wanted` free."""
    return tuple(max(0, amount - left) for amount, left in zip(wanted, packing.free[node].tolist(), strict=True))


def _victim(packing: Packing, node: int, missing: Vector) -> QueueEntry | None:
    """The job on the node that releases what is missing with the least to spare, else the one nearest to it."""
    weight = packing.pool.weight.tolist()
    best: tuple[tuple[bool, float, str], QueueEntry] | None = None
    for entry in packing.on_node[node]:
        released = _released(packing, entry, node)
        useful = sum(max(0, min(r, m)) * w for r, m, w in zip(released, missing, weight, strict=True))
        if useful <= 0:
            continue
        enough = within(missing, released)
        score = sum(r * w for r, w in zip(released, weight, strict=True)) if enough else -useful
        key = (not enough, score, entry.name)
        if best is None or key < best[0]:
            best = (key, entry)
    return None if best is None else best[1]


def _released(packing: Packing, entry: QueueEntry, node: int) -> Vector:
    """What the node gets back when the job is cut down to its least."""
    assigned = packing.assigned[entry]
    for (index, _, amounts), (_, _, least) in zip(assigned.shares, assigned.least, strict=True):
        if index == node:
            return tuple(amount - low for amount, low in zip(amounts, least, strict=True))
    return (0,) * len(packing.pool.best_share)
