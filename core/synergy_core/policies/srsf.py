"""Shortest remaining service first: remaining time times GPUs (Tiresias, section 3.2.1, Table 1)."""

import math

from synergy_core.model.snapshot import Job
from synergy_core.policies.queue import Queue, Ranking, ranked


def rank(queue: Queue) -> Ranking:
    """Jobs by the GPU-seconds they still need at their proportional share; those of unknown length come last."""

    def remaining_gpu_s(job: Job) -> float:
        remaining = queue.remaining_s(job)
        return math.inf if remaining is None else remaining * job.gpus

    return ranked(queue, remaining_gpu_s)
