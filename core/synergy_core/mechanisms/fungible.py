"""Mechanisms with fungible CPU and memory (Synergy, section 4.2).

The jobs that run are selected by GPUs alone (`selection.by_share`). Then one function places them on the nodes of a GPU
type.

* It may rely on this: `PoolSelection.reservations` holds a reservation for each job, so all fit if each gets its own.
* It must keep this: no node over its capacity; no job below the speed of its GPU-proportional share; the same amounts
  beside each GPU of a job; staying jobs on their nodes, which in fill mode at most shrink.
"""

from collections.abc import Callable

from synergy_core.mechanisms.mechanism import Mechanism, Outcome
from synergy_core.mechanisms.packing.statement import Packing
from synergy_core.mechanisms.quota_limits import keep_to_quotas
from synergy_core.model.config import Mode
from synergy_core.selection.by_share import select
from synergy_core.selection.pool_selection import PoolSelection
from synergy_core.selection.round import Round

Pack = Callable[[PoolSelection, Mode], Packing]
"""Places all jobs of a selection."""


def fungible(pack: Pack) -> Mechanism:
    """The mechanism that selects by GPUs alone and then places the selected jobs with `pack`."""

    def mechanism(round_: Round) -> Outcome:
        selection = select(round_)
        for gpu_type, one in selection.pools.items():
            one.before = round_.packed.get(gpu_type)
        packings = [pack(one, round_.mode) for one in selection.pools.values()]
        keep_to_quotas(packings, selection.quotas)
        return Outcome(packings, selection.waiting, selection.quotas.full, selection.losses)

    return mechanism
