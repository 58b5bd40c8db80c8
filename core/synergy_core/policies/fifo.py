"""First in, first out: the earliest arrival first."""

from operator import attrgetter

from synergy_core.policies.queue import Queue, Ranking, ranked


def rank(queue: Queue) -> Ranking:
    """Jobs by arrival."""
    return ranked(queue, attrgetter("arrival_s"))
