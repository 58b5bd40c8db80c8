"""Synergy-Greedy (Synergy, section 3.3): first fit of whole demand vectors in the order of the line.

A job that fits on no server in all dimensions is skipped in this round. That leaves GPUs idle where CPU or memory is
used up, and passes over hungry jobs for long: it is there to be compared with.
"""

from synergy_core.mechanisms.fixed_demands import FixedDemands
from synergy_core.mechanisms.mechanism import Outcome
from synergy_core.selection.round import Round


def mechanism(round_: Round) -> Outcome:
    """Walk the line; each job keeps its place with its whole demand, enters with it, or waits."""
    walk = FixedDemands(round_, displaces=round_.mode == "round")
    walk.walk()
    return walk.outcome()
