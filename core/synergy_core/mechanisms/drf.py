"""Dominant resource fairness with fixed demands (Ghodsi et al.; Synergy, section 5.7).

Progressive filling: the user with the smallest dominant share gets the next of its own jobs. A user is a tenant; a job
without a tenant is a user of its own. The dominant share is the user's largest part of any resource of the cluster,
GPUs included. A job counts with its demand vector, divided by its weight. The policy's order decides among users with
the same share, and among the jobs of one user.

A job keeps what it gets to its end: no job is displaced for another. Synergy's tuning takes this order and makes CPU
and memory fungible (`tuned`).
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from synergy_core.mechanisms.fixed_demands import FixedDemands
from synergy_core.mechanisms.mechanism import Outcome
from synergy_core.model.pool import Pool
from synergy_core.model.resources import times
from synergy_core.selection.queue_entry import QueueEntry, fastest_first
from synergy_core.selection.round import Round


def mechanism(round_: Round) -> Outcome:
    """Fill the cluster user by user; each job keeps its place, enters with its whole demand, or waits."""
    walk = FixedDemands(round_, displaces=False)
    order(round_, walk)
    return walk.outcome()


def order(round_: Round, walk: FixedDemands) -> list[QueueEntry]:
    """Fill the cluster. All entries in the order in which they were considered, the running jobs first."""
    considered = [*walk.serve_guarantees(), *walk.confirm_the_rest()]
    shares: dict[tuple[str, str], float] = {}
    for entry in considered:
        _count(shares, entry, walk, round_.pools)
    queues: dict[tuple[str, str], list[QueueEntry]] = {}
    for entry in walk.newcomers():
        if entry.is_profile_run:
            walk.admit(entry)
            considered.append(entry)
        else:
            queues.setdefault(_user(entry), []).append(entry)
    line = [(shares.get(user, 0.0), queue[0].rank, user, 0) for user, queue in queues.items()]
    heapify(line)
    while line and not walk.is_over():
        _, _, user, index = heappop(line)
        entry = queues[user][index]
        considered.append(entry)
        if walk.admit(entry):
            _count(shares, entry, walk, round_.pools)
        if index + 1 < len(queues[user]):
            heappush(line, (shares.get(user, 0.0), queues[user][index + 1].rank, user, index + 1))
    return considered


def _user(entry: QueueEntry) -> tuple[str, str]:
    tenant = entry.job.tenant
    return (tenant, "") if tenant else ("", entry.name)


def _count(shares: dict[tuple[str, str], float], entry: QueueEntry, walk: FixedDemands, pools: Sequence[Pool]) -> None:
    user = _user(entry)
    shares[user] = shares.get(user, 0.0) + dominant_share(entry, walk, pools) / entry.job.weight


def dominant_share(entry: QueueEntry, walk: FixedDemands, pools: Sequence[Pool]) -> float:
    """The largest part of a resource of the whole cluster that the job's demand takes."""
    totals = [sum(sum(pool.gpus) for pool in pools)]
    totals += [sum(entries) for entries in zip(*(left for pool in pools for left in pool.capacity), strict=True)]
    pool = entry.held.pool if entry.held is not None else fastest_first(entry, pools)[0]
    demand = walk.demand(entry, pool) or pool.best_share
    wanted = (entry.gpus, *times(demand, entry.gpus))
    return max(amount / max(1, total) for amount, total in zip(wanted, totals, strict=True))
