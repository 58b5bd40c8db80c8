"""Keeps the allocation within the quotas: the last step of the mechanisms with fungible CPU and memory."""

from collections.abc import Iterable

from synergy_core.mechanisms.packing.statement import Packing
from synergy_core.model.pool import Reservation, shares_of
from synergy_core.model.resources import smaller, split_down
from synergy_core.selection.queue_entry import QueueEntry
from synergy_core.selection.quotas import QuotaLedger


def keep_to_quotas(packings: Iterable[Packing], quotas: QuotaLedger) -> None:
    """Cut jobs whose quota is overdrawn down to their least, the lowest in the queue first.

    Newcomers have room in their quotas with that. A running job's quota may still be overdrawn, because it was lowered
    or other pods hold it. Such a job gets no more than it holds.
    """
    if not any(left < 0 for left in quotas.left):
        return
    assigned = [(entry, packing) for packing in packings for entry in packing.assigned if entry.job.quotas]
    assigned.sort(key=lambda entry: -entry[0].rank)
    for entry, packing in assigned:
        if quotas.overdrawn(entry):
            packing.resize(entry, packing.assigned[entry].least)
    for entry, packing in assigned:
        if quotas.overdrawn(entry):
            packing.resize(entry, _no_more_than_held(entry, packing))


def _no_more_than_held(entry: QueueEntry, packing: Packing) -> Reservation:
    held, assigned = entry.held, packing.assigned[entry]
    if held is None or held.pool is not packing.pool or held.assignments != assigned.assignments:
        return assigned.shares
    per_gpu = smaller(*(split_down(amounts, gpus) for _, gpus, amounts in held.reservation))
    return shares_of(assigned.assignments, smaller(per_gpu, assigned.per_gpu))
