"""DRF and Tetris with Synergy's tuning (Synergy, section 5.7): their order, with fungible CPU and memory.

The jobs are put in the order in which the mechanism with fixed demands takes them, running jobs first; the admission
walk then follows that order by GPUs alone, and the jobs are packed as `tune` does. No GPU stays idle for want of CPU or
memory.
"""

from collections.abc import Callable

from synergy_core.mechanisms.fixed_demands import FixedDemands
from synergy_core.mechanisms.fungible import fungible
from synergy_core.mechanisms.mechanism import Mechanism, Outcome
from synergy_core.mechanisms.tune import pack
from synergy_core.selection.queue_entry import QueueEntry
from synergy_core.selection.round import Round

Order = Callable[[Round, FixedDemands], list[QueueEntry]]


def tuned(order: Order) -> Mechanism:
    """The tuned variant of the mechanism with fixed demands that fills the cluster with `order`."""
    tune = fungible(pack)

    def mechanism(round_: Round) -> Outcome:
        first = [entry.name for entry in order(round_, FixedDemands(round_, displaces=False))]
        return tune(round_.in_order(first))

    return mechanism
