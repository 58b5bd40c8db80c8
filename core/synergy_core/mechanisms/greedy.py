"""Synergy-Greedy (Synergy, section 3.3): first fit of whole demand vectors, in the order of the queue.

A round skips a job that fits on no server in all dimensions. That leaves GPUs idle where CPU or memory is used up, and
passes over resource-hungry jobs for long. It is there to be compared with.
"""

from synergy_core.mechanisms.fixed_demands import FixedDemands
from synergy_core.mechanisms.mechanism import Outcome
from synergy_core.selection.round import Round


def mechanism(round_: Round) -> Outcome:
    """Walk the queue; each job keeps its place with its whole demand, enters with it, or waits."""
    walk = FixedDemands(round_, displaces=round_.mode == "round")
    walk.walk()
    return walk.outcome()
