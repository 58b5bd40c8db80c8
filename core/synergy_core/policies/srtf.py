"""Shortest remaining time first (Synergy, section 2.2)."""

import math

from synergy_core.model import Job
from synergy_core.policies.queue import Queue, Ranking, ranked


def rank(queue: Queue) -> Ranking:
    """Jobs by the seconds they still need at their GPU-proportional share; those of unknown length come last."""

    def remaining_s(job: Job) -> float:
        speed = queue.steps_per_s(job)
        if job.steps_total is None or speed <= 0.0:
            return math.inf
        return max(0, job.steps_total - job.steps_done) / speed

    return ranked(queue, remaining_s)
