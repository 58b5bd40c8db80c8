"""How the chosen jobs' CPU and memory are dealt out.

A mechanism is a function `(PoolSelection, Mode) -> Packing`: it gets who runs on the nodes of one GPU type, and seats
every one of them. What it may count on: `PoolSelection.reservations` holds a promise for each, so that all fit if each
gets its promise. What it must keep: no node over its capacity; no job below the speed of its GPU-proportional share;
the same amounts beside each GPU of a job; staying jobs stay on their nodes, and in fill mode shrink at the most.
"""

from collections.abc import Callable, Mapping

from synergy_core.mechanisms import proportional, tune
from synergy_core.mechanisms.statement import Packing
from synergy_core.model import Mode
from synergy_core.rounds import PoolSelection

Mechanism = Callable[[PoolSelection, Mode], Packing]

MECHANISMS: Mapping[str, Mechanism] = {"proportional": proportional.pack, "tune": tune.pack}
