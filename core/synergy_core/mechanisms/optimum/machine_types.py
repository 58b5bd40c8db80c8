"""Which GPU type each job runs on: Synergy-Opt on mixed machines (Synergy, appendix A.2).

One integer programme covers all types. It gives each job one type and one point of its matrix there, never slower than
its fair speed. It maximises the sum of speeds. Each type is one machine with the GPUs and other resources of all its
nodes. What is left then goes to the next waiting jobs, and the programme is solved again, until no job enters.

The fair speed of a job (the paper's W_fair, from an oracle) is by default its speed at the proportional share of the
type that the walk along the queue gives it (`by_share`). So it follows any policy, and an assignment that keeps it
always exists. Running jobs keep their type, since another one means a restart; so do jobs that are bound to nodes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from synergy_core.mechanisms.optimum.choice import Option, best_choice
from synergy_core.mechanisms.optimum.ideal import capacity_of, everyone, front_on, reference_speed
from synergy_core.mechanisms.optimum.sensitivity import ParetoPoint, pareto_front
from synergy_core.model.pool import Pool
from synergy_core.model.reasons import Reason
from synergy_core.model.resources import times
from synergy_core.selection.by_share import floats
from synergy_core.selection.pool_selection import Selection
from synergy_core.selection.queue_entry import QueueEntry, fastest_first

Fair = Callable[[QueueEntry, Pool], float]
"""The fair speed, in steps per second, of a job on the pool that the walk gave it."""


def speed_at_share(entry: QueueEntry, pool: Pool) -> float:
    """Speed at the smallest proportional share of the type that the walk along the queue gave the job."""
    terms = entry.on(pool)
    return terms.steps_per_s(terms.proportional_to(pool.least_share))


def give_better_types(selection: Selection, pools: Sequence[Pool], fair: Fair = speed_at_share) -> None:
    """Exchange types to maximise the sum of speeds, and admit jobs that then fit."""
    fair_speeds: dict[QueueEntry, float] = {}
    has_changed = len(pools) > 1
    while has_changed:
        for pool in pools:
            for entry in selection.pools[pool.gpu_type].floating:
                fair_speeds.setdefault(entry, fair(entry, pool))
        _move(selection, best_types(selection, pools, fair_speeds))
        has_changed = _let_in(selection, pools)


def best_types(
    selection: Selection, pools: Sequence[Pool], fair_speeds: Mapping[QueueEntry, float]
) -> dict[QueueEntry, Pool]:
    """The type of each floating job; where no assignment keeps all fair speeds, the type that it has."""
    owners = [
        (entry, pool, entry in floating)
        for pool in pools
        for floating in [set(selection.pools[pool.gpu_type].floating)]
        for entry in everyone(selection.pools[pool.gpu_type])
    ]
    offers = [
        _offers(entry, own, pools if is_floating else [own], fair_speeds.get(entry))
        for entry, own, is_floating in owners
    ]
    choice = best_choice(
        [
            [_option(offer, pools, is_floating) for offer in one]
            for one, (_, _, is_floating) in zip(offers, owners, strict=True)
        ],
        _capacity(selection, pools),
    )
    if choice is None:
        return {entry: own for entry, own, is_floating in owners if is_floating}
    return {
        entry: one[pick].pool
        for (entry, _, is_floating), one, pick in zip(owners, offers, choice.options, strict=True)
        if is_floating
    }


@dataclass(frozen=True, slots=True)
class _Offer:
    """A job on a type, with a point of its front there."""

    entry: QueueEntry
    pool: Pool
    point: ParetoPoint


def _offers(entry: QueueEntry, own: Pool, pools: Sequence[Pool], fair: float | None) -> list[_Offer]:
    """What a job may be given: on its own type its front, on others what is not slower than its fair speed."""
    reference = reference_speed(entry, own)
    offers = [_Offer(entry, own, point) for point in front_on(entry, own)]
    if fair is None:
        return offers
    for pool in fastest_first(entry, pools):
        terms = entry.on(pool)
        if pool is own or terms.speed is None or not floats(entry, pool):
            continue
        least = terms.floor_of_share(pool.least_share)
        enough = max(fair, speed_at_share(entry, pool))
        front = pareto_front(entry, pool, least, fair=enough, reference=reference)
        offers += [_Offer(entry, pool, point) for point in front]
    return [offer for offer in offers if _keeps(offer, fair)] or offers


def _keeps(offer: _Offer, fair: float) -> bool:
    terms = offer.entry.on(offer.pool)
    return terms.speed is None or terms.steps_per_s(offer.point.per_gpu) >= fair


def _option(offer: _Offer, pools: Sequence[Pool], is_floating: bool) -> Option:
    gpus = offer.entry.gpus
    first = pools.index(offer.pool) * (1 + len(offer.point.per_gpu))
    takes = ((gpus if is_floating else 0), *times(offer.point.per_gpu, gpus))
    return Option(offer.point.worth, tuple((first + row, amount) for row, amount in enumerate(takes)))


def _capacity(selection: Selection, pools: Sequence[Pool]) -> list[int]:
    """Per type: GPUs of the floating jobs and those that are idle, and what all nodes have beside their GPUs."""
    capacity: list[int] = []
    for pool in pools:
        one = selection.pools[pool.gpu_type]
        capacity.append(one.reservations.total)
        capacity.extend(capacity_of(one))
    return capacity


def _move(selection: Selection, types: Mapping[QueueEntry, Pool]) -> None:
    for one in selection.pools.values():
        one.floating = []
        one.reservations.floating = 0
    for entry, pool in types.items():
        _let_float(selection, entry, pool)


def _let_float(selection: Selection, entry: QueueEntry, pool: Pool) -> None:
    one = selection.pools[pool.gpu_type]
    one.floating.append(entry)
    one.reservations.floating += entry.gpus


def _let_in(selection: Selection, pools: Sequence[Pool]) -> bool:
    """Give the unassigned GPUs to the next jobs that wait and fit; whether there were any."""
    still: list[tuple[QueueEntry, Reason]] = []
    for entry, reason in selection.waiting:
        pool = None if entry.is_profile_run else _room_for(selection, entry, pools)
        if pool is None:
            still.append((entry, reason))
        else:
            _let_float(selection, entry, pool)
    entered = len(still) < len(selection.waiting)
    selection.waiting = still
    return entered


def _room_for(selection: Selection, entry: QueueEntry, pools: Sequence[Pool]) -> Pool | None:
    if entry.job.quotas:  # the walk along the queue has said why it waits
        return None
    for pool in fastest_first(entry, pools):
        if floats(entry, pool) and selection.pools[pool.gpu_type].reservations.idle >= entry.gpus:
            return pool
    return None
