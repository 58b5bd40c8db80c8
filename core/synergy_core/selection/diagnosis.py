"""Finds the reason why a job cannot be placed: first what will never fit, then what does not fit now."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synergy_core.model.placement import Emptiness, NodeAssignments, Rooms, choose
from synergy_core.model.pool import Pool, Reservations
from synergy_core.model.reasons import Reason
from synergy_core.model.snapshot import Placement
from synergy_core.selection.queue_entry import QueueEntry

_FAR: Final = 1e6
"""More than any two nodes differ in how empty they are."""
_ALL_NODES: Final = slice(None)

AS_PLACED: Final[Mapping[Placement, Reason]] = {
    "consolidate": Reason.NO_FREE_NODE,
    "pack": Reason.WOULD_BE_SPREAD,
}
"""Why a job waits while GPUs are free, but not in the placement that it needs."""


def free_to(entry: QueueEntry, pool: Pool) -> NDArray[np.bool_]:
    """The pool's nodes that the entry may start on: those that are not reserved for another job."""
    kept = entry.reserved.get(pool.gpu_type)
    allowed = entry.open_nodes(pool)
    if not kept:
        return allowed
    free = allowed.copy()
    free[list(kept)] = False
    return free


def room_to_reserve(entry: QueueEntry, reservations: Reservations) -> tuple[Rooms, NDArray[np.float64]]:
    """GPUs that each node can reserve for the entry, and how little its place there would hurt (the less, the better).

    A job that takes more than its share of a node goes where the fewest other GPUs are left without CPU or memory.
    """
    pool = reservations.pool
    terms = entry.on(pool)
    if not terms.hard:
        room = reservations.slots
        harm = room.astype(np.float64)
    else:
        per_gpu = _reserved_per_gpu(entry, pool)
        room = reservations.room(per_gpu)
        stranded = reservations.stranded(per_gpu, entry.gpus)
        harm = (stranded * (1 + max(pool.gpus)) + reservations.slots).astype(np.float64)
    return np.where(free_to(entry, pool), room, 0), harm


def choose_for(entry: QueueEntry, pool: Pool, room: Rooms, emptiness: Emptiness) -> NodeAssignments | None:
    """Nodes of the pool for the entry in its placement; None where it does not fit.

    Of nodes that would do, jobs that share prefer nodes with shared GPUs, and other jobs the rest. A gang that needs
    several nodes, and minds which, gets no more of them than it needs, and these near each other if there are such.
    """
    place = entry.place(pool)
    emptiness = apart(entry, pool, emptiness)
    assignments = choose(place, entry.gpus, room, emptiness)
    tier = entry.nearness.get(pool.gpu_type)
    if assignments is not None and tier is not None and len(assignments) > 1:
        most = entry.info.fewest_nodes(pool) if tier.fewest_nodes else entry.gpus
        return pool.domains.choose("auto", entry.gpus, room, emptiness, (most, tier.depth))
    if assignments is None or (place == "pack" and len(assignments) > entry.info.fewest_nodes(pool)):
        return None
    if len(assignments) == 1 or place == "spread" or not pool.domains:
        return assignments
    return pool.domains.choose(place, entry.gpus, room, emptiness, (len(assignments), 0)) or assignments


def apart(
    entry: QueueEntry, pool: Pool, emptiness: Emptiness, nodes: slice | NDArray[np.intp] = _ALL_NODES
) -> Emptiness:
    """How empty nodes are, those far away that jobs which share should leave to the others, and the other way round."""
    if entry.wants_shared is None or pool.shared is None:
        return emptiness
    put_off: Emptiness = emptiness + _FAR * (pool.shared[nodes] != (pool.gpu_type in entry.wants_shared))
    return put_off


def could_run_at_once(entry: QueueEntry, pools: Sequence[Pool]) -> bool:
    """A quick yes for most jobs for which `never` finds no reason: GPUs alone tell that it could run."""
    if entry.job.nodes is not None:
        return False
    of = 1 if entry.info.placement == "consolidate" else 0
    return any(entry.gpus <= pool.open_gpus[of] and entry.may_use(pool) and not entry.on(pool).hard for pool in pools)


def never(entry: QueueEntry, pools: Sequence[Pool]) -> Reason | None:
    """Why the job could not run if nothing else did; None if it could."""
    allowed = [pool for pool in pools if entry.may_use(pool)]
    if not any(pool.nodes for pool in allowed):
        return Reason.NO_SUCH_GPU_TYPE
    rooms = [_gpus_open_to(entry, pool) for pool in allowed]
    if not any(total for total, _ in rooms):
        return Reason.NO_ALLOWED_NODE
    if all(total < entry.gpus for total, _ in rooms):
        return Reason.TOO_MANY_GPUS
    if entry.info.placement == "consolidate" and all(most < entry.gpus for _, most in rooms):
        return Reason.TOO_MANY_GPUS_FOR_A_NODE
    if not any(_fits_empty(entry, pool) for pool in allowed):
        return Reason.MINIMUM_TOO_LARGE
    return None


def _gpus_open_to(entry: QueueEntry, pool: Pool) -> tuple[int, int]:
    """GPUs of the nodes that the queue entry may be placed on: all together, and on one node at the most."""
    if entry.job.nodes is None:
        return pool.open_gpus
    rooms = entry.info.open_gpus(pool)
    return int(rooms.sum()), int(rooms.max())


def _fits_empty(entry: QueueEntry, pool: Pool) -> bool:
    if not entry.on(pool).hard:
        return True
    per_gpu = _reserved_per_gpu(entry, pool)
    afforded = (np.array(pool.capacity, dtype=np.int64) // np.maximum(1, per_gpu)).min(axis=1)
    room = np.where(entry.open_nodes(pool), np.minimum(pool.gpus, afforded), 0)
    if entry.placements.get(pool.gpu_type) == "pack":  # what the policy prefers this round; any nodes would do
        return int(room.sum()) >= entry.gpus
    return choose_for(entry, pool, room, room.astype(np.float64)) is not None


def _reserved_per_gpu(entry: QueueEntry, pool: Pool) -> NDArray[np.int64]:
    terms = entry.on(pool)
    return np.array([terms.reserved_per_gpu(node) for node in range(len(pool.nodes))], dtype=np.int64)


def not_now(entry: QueueEntry, reservations: Sequence[Reservations]) -> Reason:
    """Why the job, which could run, does not run now."""
    if entry.goes_by_price and any(
        one.idle >= entry.gpus and one.pool.gpu_type not in (entry.types or ())
        for one in reservations
        if entry.may_use(one.pool)
    ):
        return Reason.NOT_WORTH_ITS_PRICE
    if entry.job.running is not None:
        return Reason.YIELDED
    usable = [one for one in reservations if entry.may_use(one.pool)]
    roomy = [one for one in usable if one.idle >= entry.gpus]
    if any(entry.on(one.pool).hard for one in roomy):
        return Reason.NO_FREE_CPU_OR_MEMORY
    if not roomy and any(one.unheld >= entry.gpus for one in usable):
        return Reason.NO_FREE_CPU_OR_MEMORY
    return AS_PLACED.get(entry.wanted(roomy[0].pool), Reason.NO_FREE_GPU) if roomy else Reason.NO_FREE_GPU
