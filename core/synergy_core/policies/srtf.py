"""Shortest remaining time first (Synergy, section 2.2)."""

import math

from synergy_core.model.snapshot import Job
from synergy_core.policies.queue import Queue, Ranking, ranked


def rank(queue: Queue) -> Ranking:
    """Jobs by the seconds they still need at their GPU-proportional share; those of unknown length come last."""

    def remaining_s(job: Job) -> float:
        remaining = queue.remaining_s(job)
        return math.inf if remaining is None else remaining

    return ranked(queue, remaining_s)
