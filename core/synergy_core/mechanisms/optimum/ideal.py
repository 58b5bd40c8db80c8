"""The ideal demand of each job were all nodes one: the first programme of Synergy-Opt (Synergy, section 4.1.1)."""

from collections.abc import Mapping
from dataclasses import dataclass

from synergy_core.mechanisms.optimum.choice import Option, best_choice
from synergy_core.mechanisms.optimum.sensitivity import ParetoPoint, pareto_front
from synergy_core.model.pool import Pool
from synergy_core.model.resources import Vector, times
from synergy_core.selection.pool_selection import PoolSelection
from synergy_core.selection.queue_entry import QueueEntry


@dataclass(frozen=True, slots=True)
class Ideal:
    """What each job should have beside each GPU, and the sum of their speeds relative to their proportional shares."""

    demands: Mapping[QueueEntry, Vector]
    throughput: float
    """No packing on real nodes has more (theorem 4.1), up to the solver's gap, with amounts of the jobs' own grids."""


def everyone(selection: PoolSelection) -> list[QueueEntry]:
    """The jobs that run on the pool, by name, without those that are pinned to what they hold."""
    running = [*selection.staying, *selection.assigned, *selection.floating]
    return sorted((one for one in running if one not in selection.pinned), key=lambda entry: entry.name)


def capacity_of(selection: PoolSelection) -> list[int]:
    """What all nodes of the pool have together beside GPUs, without what pinned jobs hold."""
    pool = selection.reservations.pool
    left = [sum(entries) for entries in zip(*pool.capacity, strict=True)]
    for entry in selection.pinned:
        for _, _, amounts in entry.held.reservation if entry.held is not None else ():
            left = [max(0, entry - amount) for entry, amount in zip(left, amounts, strict=True)]
    return left


def ideal(selection: PoolSelection) -> Ideal:
    """Solve equations 1 to 5 for the jobs on one pool."""
    pool = selection.reservations.pool
    entries = everyone(selection)
    fronts = [front_on(entry, pool) for entry in entries]
    options = [
        [Option(point.worth, tuple(enumerate(times(point.per_gpu, entry.gpus)))) for point in front]
        for entry, front in zip(entries, fronts, strict=True)
    ]
    choice = best_choice(options, capacity_of(selection))
    if choice is None:
        return Ideal({entry: entry.on(pool).demand for entry in entries}, float("inf"))
    chosen = zip(entries, fronts, choice.options, strict=True)
    return Ideal({entry: front[index].per_gpu for entry, front, index in chosen}, choice.value)


def front_on(entry: QueueEntry, pool: Pool) -> list[ParetoPoint]:
    """The Pareto front of a job without nodes yet: not slower than at the pool's smallest share."""
    terms = entry.on(pool)
    least = terms.floor_of_share(pool.least_share)
    usual = terms.proportional_steps_per_s(terms.proportional_to(pool.least_share))
    return pareto_front(entry, pool, least, fair=usual, reference=reference_speed(entry, pool))


def reference_speed(entry: QueueEntry, pool: Pool) -> float:
    """Speed at the proportional share of the pool's best nodes, which throughputs are relative to."""
    terms = entry.on(pool)
    return terms.proportional_steps_per_s() or terms.steps_per_s(pool.most_per_gpu(entry.gpus))
