"""Tetris: multi-resource packing of fixed demands (Grandl et al.; Synergy, section 5.7).

Machine by machine, the fullest first: of the jobs whose whole demand fits there, the one with the highest score is
taken, until none fits. The score is the alignment, the dot product of the job's demand and what the machine has free,
both as fractions of the machine, plus epsilon * the job's place in the policy's line (1 for the first, 0 for the last).
Tetris has the shortest remaining time there, which is that of the line of `srtf`; epsilon weighs both alike on average.

Jobs that no machine is large enough for would never fit machine by machine: those of them whose turn it is, counting
along the line the GPUs that are free, come first. Jobs that fit on no machine alone come last, and may be split. What a
job gets it keeps to its end.
"""

import numpy as np
from numpy.typing import NDArray

from synergy_core.mechanisms.fixed_demands import FixedDemands
from synergy_core.mechanisms.mechanism import Outcome, Round
from synergy_core.mechanisms.statement import shares_of
from synergy_core.model.pool import Pool
from synergy_core.selection.contender import Contender, fastest_first


def mechanism(round_: Round) -> Outcome:
    """Fill machine after machine; each job keeps its place, enters with its whole demand, or waits."""
    walk = FixedDemands(round_, displaces=False)
    order(round_, walk)
    return walk.outcome()


def order(round_: Round, walk: FixedDemands) -> list[Contender]:
    """Fill the cluster; everyone in the order in which they were considered, the running jobs first."""
    seated = walk.let_stay()
    by_pool: dict[str, list[Contender]] = {pool.gpu_type: [] for pool in round_.pools}
    last: list[Contender] = []
    free = sum(max(0, walk.reservations(pool).unheld) for pool in round_.pools)
    for contender in walk.newcomers():
        pools = fastest_first(contender, round_.pools)
        free -= contender.gpus
        if contender.is_profile_run or not pools or (free >= 0 and _needs_several(contender, pools[0])):
            walk.admit(contender)
            seated.append(contender)
        elif _needs_several(contender, pools[0]):
            last.append(contender)
        else:
            by_pool[pools[0].gpu_type].append(contender)
    for pool in round_.pools:
        seated += _fill(pool, by_pool[pool.gpu_type], walk)
        last += [contender for contender in by_pool[pool.gpu_type] if not walk.has_seat(contender)]
    last.sort(key=lambda contender: contender.rank)
    for contender in last:
        if walk.is_over():
            break
        walk.admit(contender)
    return [*seated, *last]


def _needs_several(contender: Contender, pool: Pool) -> bool:
    return contender.gpus > max(pool.gpus) or (contender.gpus > 1 and contender.place(pool) == "spread")


def _fill(pool: Pool, queue: list[Contender], walk: FixedDemands) -> list[Contender]:
    """Seat jobs on the pool's machines; those who were seated, in that order."""
    demands = [(contender, walk.demand(contender, pool)) for contender in queue]
    fixed = [(contender, demand) for contender, demand in demands if demand is not None]
    if not fixed:
        return []
    wanted = np.array([[c.gpus, *(amount * c.gpus for amount in demand)] for c, demand in fixed], dtype=np.int64)
    allowed = np.array([contender.open_nodes(pool) for contender, _ in fixed])
    first = 1.0 - np.arange(len(fixed)) / max(1, len(fixed) - 1)
    waits = np.ones(len(fixed), dtype=bool)
    seated: list[Contender] = []
    ledger = walk.reservations(pool)
    for node in sorted(range(len(pool.nodes)), key=lambda index: (ledger.free_gpus[index], pool.nodes[index].name)):
        machine = np.maximum(1, [pool.gpus[node], *pool.capacity[node]])
        while ledger.free_gpus[node] > 0:
            free = np.array([ledger.free_gpus[node], *ledger.free[node]], dtype=np.int64)
            fits = waits & allowed[:, node] & (wanted <= free).all(axis=1)
            if not fits.any():
                break
            best = _highest(wanted / machine @ (free / machine), first, fits)
            contender, demand = fixed[best]
            booking = shares_of(((node, contender.gpus),), demand)
            waits[best] = False
            if not walk.quotas_allow(contender, pool, booking):
                continue
            walk.seat(contender, pool, booking)
            seated.append(contender)
    return seated


def _highest(alignment: NDArray[np.float64], first: NDArray[np.float64], fits: NDArray[np.bool_]) -> int:
    """The job with the highest score among those that fit; of equal ones the first in line."""
    mean_first = float(first[fits].mean())
    epsilon = float(alignment[fits].mean()) / mean_first if mean_first > 0 else 0.0
    return int(np.argmax(np.where(fits, alignment + epsilon * first, -np.inf)))
