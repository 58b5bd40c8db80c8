"""Synergy-Opt (Synergy, section 4.1 and appendix A).

1. The ideal demand of each job were all nodes one: an integer programme over the jobs' own grids (`ideal`).
2. Nodes for these demands: a linear programme whose vertices leave few jobs in parts (`fragments`).
3. Rounding. Jobs that are whole on a node go there; the others are placed one by one, in whole GPUs, where their demand
   fits, else by GPUs alone (`packer`).
4. CPU and memory for these nodes: the integer programme of step 1 again, now with the capacity of each node instead of
   that of all together. A job never gets less than at its proportional share there.
5. What no point of a grid could use goes to the jobs that it helps most (`growth`).
6. Steps 4 and 5 again with the nodes that `tune` finds, and the allocation of `tune` itself: the best of the three is
   taken. Where most jobs have many GPUs, rounding the fragments of 3s jobs loses what the programmes won. And only
   `tune` uses amounts between the points of a grid.

On several GPU types, jobs that just enter are first given the type on which all together are fastest
(`machine_types`, appendix A.2).

Where the paper leaves room: throughputs are relative to a job's speed at its proportional share, since steps of
different jobs cannot be added; running jobs stay on their nodes, as with every mechanism; between rounds (fill mode) it
fills as `tune` does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from synergy_core.mechanisms import tune
from synergy_core.mechanisms.demotion import demote
from synergy_core.mechanisms.growth import grow
from synergy_core.mechanisms.mechanism import Outcome
from synergy_core.mechanisms.optimum.choice import Option, best_choice
from synergy_core.mechanisms.optimum.fragments import Piece, parts
from synergy_core.mechanisms.optimum.ideal import everyone, ideal, reference_speed
from synergy_core.mechanisms.optimum.machine_types import give_better_types
from synergy_core.mechanisms.optimum.sensitivity import ParetoPoint, pareto_front
from synergy_core.mechanisms.packing.packer import Demands, Packer
from synergy_core.mechanisms.packing.statement import Packing
from synergy_core.mechanisms.quota_limits import keep_to_quotas
from synergy_core.model.config import Mode
from synergy_core.model.placement import NodeAssignments
from synergy_core.model.pool import Pool, shares_of
from synergy_core.model.resources import Vector, times
from synergy_core.selection.by_share import select
from synergy_core.selection.diagnosis import free_to
from synergy_core.selection.pool_selection import PoolSelection
from synergy_core.selection.queue_entry import QueueEntry
from synergy_core.selection.round import Round

_WHOLE = 1.0 - 1e-6


def mechanism(round_: Round) -> Outcome:
    """Choose GPU types for the jobs that enter, then place all; see the module."""
    selection = select(round_)
    if round_.mode == "round" and not round_.tenants:  # on another type a tenant may lie beyond its limits
        give_better_types(selection, round_.pools)
    packings = [pack(one, round_.mode) for one in selection.pools.values()]
    keep_to_quotas(packings, selection.quotas)
    return Outcome(packings, selection.waiting, selection.quotas.full, selection.losses)


def pack(selection: PoolSelection, mode: Mode) -> Packing:
    """Place all jobs of the selection; see the module."""
    if mode == "fill":
        return tune.pack(selection, mode)
    tries: tuple[Demands, ...] = (OptDemands(ideal(selection).demands), tune.TuneDemands())
    packings = [tune.pack(_separate(selection), mode)]
    for demands in tries:
        packing = Packer(_separate(selection), demands).pack(mode)
        in_play = [entry for entry in everyone(selection) if not entry.is_profile_run]
        _deal_out(packing, in_play)
        grow(packing, {entry: entry.on(packing.pool).demand for entry in in_play})
        packings.append(packing)
    best = max(reversed(packings), key=throughput)
    selection.quotas.become(best.quotas)
    best.quotas = selection.quotas
    return best


def _separate(selection: PoolSelection) -> PoolSelection:
    return replace(selection, reservations=selection.reservations.copy(), quotas=selection.quotas.copy())


def throughput(packing: Packing) -> float:
    """Sum of speeds relative to the proportional share."""
    pool = packing.pool
    return sum(
        entry.on(pool).steps_per_s(assigned.per_gpu) / (reference_speed(entry, pool) or 1.0)
        for entry, assigned in packing.assigned.items()
    )


class OptDemands(tune.TuneDemands):
    """The ideal demand, on the nodes of the second programme; else the least that is as fast as the share."""

    def __init__(self, demands: Mapping[QueueEntry, Vector]) -> None:
        self._demands = demands

    def demand(self, entry: QueueEntry, pool: Pool) -> Vector | None:
        """The ideal demand."""
        return self._demands[entry]

    def advised(self, packing: Packing, entries: Sequence[QueueEntry]) -> Mapping[QueueEntry, NodeAssignments]:
        """Nodes for jobs that are whole on one node in the second programme."""
        in_order = sorted(entries, key=lambda entry: entry.name)
        pieces = [
            Piece(entry.gpus, times(self._demands[entry], entry.gpus), free_to(entry, packing.pool))
            for entry in in_order
        ]
        found = parts(pieces, packing.reservations.slots, packing.free)
        if found is None:
            return {}
        return {
            entry: ((node, entry.gpus),)
            for entry, on_nodes in zip(in_order, found, strict=True)
            for node, part in on_nodes.items()
            if part >= _WHOLE and (entry.gpus == 1 or entry.place(packing.pool) != "spread")
        }


def _deal_out(packing: Packing, entries: Sequence[QueueEntry]) -> None:
    """Give each of the jobs the point of its front that is best for all together on the nodes where they are."""
    pool = packing.pool
    fronts = [_front_in_place(packing, entry) for entry in entries]
    dimensions = len(pool.best_share)
    options = [
        [
            Option(
                point.worth,
                tuple(
                    (node * dimensions + dimension, amount * gpus)
                    for node, gpus in packing.assigned[entry].assignments
                    for dimension, amount in enumerate(point.per_gpu)
                ),
            )
            for point in front
        ]
        for entry, front in zip(entries, fronts, strict=True)
    ]
    free = packing.free.copy()
    for entry in entries:
        for node, _, amounts in packing.assigned[entry].shares:
            free[node] += amounts
    choice = best_choice(options, [max(0, amount) for amount in free.ravel().tolist()])
    for index, (entry, front) in enumerate(zip(entries, fronts, strict=True)):
        assigned = packing.assigned[entry]
        given = assigned.least
        if choice is not None and packing.may_have(entry, assigned.assignments, front[choice.options[index]].per_gpu):
            given = shares_of(assigned.assignments, front[choice.options[index]].per_gpu)
        packing.resize(entry, given)
    # the solver may have overshot by its tolerance, which is more than a byte
    nothing = (0,) * dimensions
    demote(packing, tuple((node, 0) for node in np.flatnonzero((packing.free < 0).any(axis=1)).tolist()), nothing)


def _front_in_place(packing: Packing, entry: QueueEntry) -> list[ParetoPoint]:
    pool, assigned, terms = packing.pool, packing.assigned[entry], entry.on(packing.pool)
    usual = terms.steps_per_s(terms.proportional(assigned.nodes))
    least = terms.floor(assigned.nodes)
    return pareto_front(entry, pool, least, fair=usual, reference=reference_speed(entry, pool))
