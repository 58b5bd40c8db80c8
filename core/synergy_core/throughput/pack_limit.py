"""PACKLIMIT from placements and the throughputs measured there, by a linear classifier (Tiresias, section 3.3.2).

With the skew as the only feature a linear classifier is a threshold. The one with the fewest jobs on the wrong side is
taken, each of the two classes weighing the same in all; among equals the one farthest from the jobs on both sides.
"""

from collections.abc import Iterable
from itertools import pairwise

from synergy_core.throughput.skew import WORTH_PACKING

LEARN_FROM = 5
"""Jobs of each class that must have been measured."""


def learned_pack_limit(measured: Iterable[tuple[float, float]]) -> float | None:
    """The threshold for (skew, speed on many nodes as part of that on few) of measured jobs.

    None as long as there are not 5 jobs that spreading slows down and 5 that it does not.
    """
    jobs = sorted((skew, speed < WORTH_PACKING) for skew, speed in measured)
    slow = sum(sensitive for _, sensitive in jobs)
    fast = len(jobs) - slow
    if min(slow, fast) < LEARN_FROM:
        return None
    skews = sorted({skew for skew, _ in jobs})
    limits = [(low + high) / 2 for low, high in pairwise(skews)]
    limits = [skews[0] / 2, *limits, skews[-1]]

    def error(limit: float) -> float:
        missed = sum(sensitive and skew <= limit for skew, sensitive in jobs)
        kept = sum(not sensitive and skew > limit for skew, sensitive in jobs)
        return missed / slow + kept / fast

    def margin(limit: float) -> float:
        return min(abs(skew - limit) for skew in skews)

    return min(limits, key=lambda limit: (round(error(limit), 9), -margin(limit)))
