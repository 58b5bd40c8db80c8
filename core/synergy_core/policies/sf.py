"""Smallest first: the job with the fewest GPUs first (Tiresias, section 3.2.1, Table 1)."""

from synergy_core.policies.queue import Queue, Ranking, ranked


def rank(queue: Queue) -> Ranking:
    """Jobs by the number of their GPUs."""
    return ranked(queue, lambda job: job.gpus)
