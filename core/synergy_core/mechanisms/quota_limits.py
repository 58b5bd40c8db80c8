"""Keeps what was dealt out within the quotas: the last step of the mechanisms that move CPU and memory about."""

from collections.abc import Iterable

from synergy_core.mechanisms.statement import Packing
from synergy_core.model.pool import Booking
from synergy_core.model.resources import smaller, split_down
from synergy_core.selection.by_share import shares_at
from synergy_core.selection.queue_entry import QueueEntry
from synergy_core.selection.quotas import QuotaLedger


def keep_to_quotas(packings: Iterable[Packing], quotas: QuotaLedger) -> None:
    """Cut jobs whose quota is overdrawn down to their least, those at the end of the line first.

    Whoever entered has room in its quotas with that. Running jobs may be overdrawn all the same, because somebody has
    lowered the quota or others hold it: they get no more than they hold.
    """
    if not any(left < 0 for left in quotas.left):
        return
    seated = [(entry, packing) for packing in packings for entry in packing.seated if entry.job.quotas]
    seated.sort(key=lambda entry: -entry[0].rank)
    for entry, packing in seated:
        if quotas.overdrawn(entry):
            packing.resize(entry, packing.seated[entry].least)
    for entry, packing in seated:
        if quotas.overdrawn(entry):
            packing.resize(entry, _no_more_than_held(entry, packing))


def _no_more_than_held(entry: QueueEntry, packing: Packing) -> Booking:
    held, seat = entry.held, packing.seated[entry]
    if held is None or held.pool is not packing.pool or held.seats != seat.seats:
        return seat.shares
    per_gpu = smaller(*(split_down(amounts, gpus) for _, gpus, amounts in held.booking))
    return shares_at(seat.seats, smaller(per_gpu, seat.per_gpu))
