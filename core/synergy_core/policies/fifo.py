"""First in, first out: the earliest arrival first."""

from synergy_core.policies.queue import Queue, Ranking, ranked


def rank(queue: Queue) -> Ranking:
    """Jobs by arrival."""
    return ranked(queue, lambda job: job.arrival_s)
