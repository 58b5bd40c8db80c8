"""Tetris: multi-resource packing of fixed demands (Grandl et al.; Synergy, section 5.7).

Machines are filled one by one, the fullest first. Of the jobs whose whole demand fits, the one with the highest score
is placed, until none fits. The score is the alignment plus epsilon * the job's position in the policy's order (1 for
the first, 0 for the last). The alignment is the dot product of the job's demand and what the machine has free, both as
fractions of the machine. Tetris itself uses the shortest remaining time, which is the order of `srtf`; epsilon gives
both terms the same weight on average.

A job that is larger than every machine would never fit machine by machine. Such jobs come first as far as the free GPUs
reach when counted along the queue. The rest of them come last, and may be split. A job keeps what it gets to its end.
"""

import numpy as np
from numpy.typing import NDArray

from synergy_core.mechanisms.fixed_demands import FixedDemands
from synergy_core.mechanisms.mechanism import Outcome
from synergy_core.model.pool import Pool, shares_of
from synergy_core.selection.queue_entry import QueueEntry, fastest_first
from synergy_core.selection.round import Round


def mechanism(round_: Round) -> Outcome:
    """Fill machine after machine; each job keeps its place, enters with its whole demand, or waits."""
    walk = FixedDemands(round_, displaces=False)
    order(round_, walk)
    return walk.outcome()


def order(round_: Round, walk: FixedDemands) -> list[QueueEntry]:
    """Fill the cluster. All entries in the order in which they were considered, the running jobs first."""
    assigned = [*walk.serve_guarantees(), *walk.confirm_the_rest()]
    by_pool: dict[str, list[QueueEntry]] = {pool.gpu_type: [] for pool in round_.pools}
    last: list[QueueEntry] = []
    free = sum(max(0, walk.reservations(pool).unheld) for pool in round_.pools)
    for entry in walk.newcomers():
        pools = fastest_first(entry, round_.pools)
        free -= entry.gpus
        if entry.is_profile_run or not pools or (free >= 0 and _needs_several(entry, pools[0])):
            walk.admit(entry)
            assigned.append(entry)
        elif _needs_several(entry, pools[0]):
            last.append(entry)
        else:
            by_pool[pools[0].gpu_type].append(entry)
    for pool in round_.pools:
        assigned += _fill(pool, by_pool[pool.gpu_type], walk)
        last += [entry for entry in by_pool[pool.gpu_type] if not walk.is_assigned(entry)]
    last.sort(key=lambda entry: entry.rank)
    for entry in last:
        if walk.is_over():
            break
        walk.admit(entry)
    return [*assigned, *last]


def _needs_several(entry: QueueEntry, pool: Pool) -> bool:
    return entry.gpus > max(pool.gpus) or (entry.gpus > 1 and entry.place(pool) == "spread")


def _fill(pool: Pool, queue: list[QueueEntry], walk: FixedDemands) -> list[QueueEntry]:
    """Place jobs on the pool's machines; the placed ones, in that order."""
    demands = [(entry, walk.demand(entry, pool)) for entry in queue]
    fixed = [(entry, demand) for entry, demand in demands if demand is not None]
    if not fixed:
        return []
    wanted = np.array([[c.gpus, *(amount * c.gpus for amount in demand)] for c, demand in fixed], dtype=np.int64)
    allowed = np.array([entry.open_nodes(pool) for entry, _ in fixed])
    first = 1.0 - np.arange(len(fixed)) / max(1, len(fixed) - 1)
    waits = np.ones(len(fixed), dtype=bool)
    assigned: list[QueueEntry] = []
    ledger = walk.reservations(pool)
    for node in sorted(range(len(pool.nodes)), key=lambda index: (ledger.free_gpus[index], pool.nodes[index].name)):
        machine = np.maximum(1, [pool.gpus[node], *pool.capacity[node]])
        while ledger.free_gpus[node] > 0:
            free = np.array([ledger.free_gpus[node], *ledger.free[node]], dtype=np.int64)
            fits = waits & allowed[:, node] & (wanted <= free).all(axis=1)
            if not fits.any():
                break
            best = _highest(wanted / machine @ (free / machine), first, fits)
            entry, demand = fixed[best]
            reservation = shares_of(((node, entry.gpus),), demand)
            waits[best] = False
            if walk.takes(entry, pool, reservation):
                assigned.append(entry)
    return assigned


def _highest(alignment: NDArray[np.float64], first: NDArray[np.float64], fits: NDArray[np.bool_]) -> int:
    """The job with the highest score among those that fit; of equal ones the highest in the queue."""
    mean_first = float(first[fits].mean())
    epsilon = float(alignment[fits].mean()) / mean_first if mean_first > 0 else 0.0
    return int(np.argmax(np.where(fits, alignment + epsilon * first, -np.inf)))
