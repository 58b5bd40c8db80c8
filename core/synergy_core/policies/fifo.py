"""First in, first out: the earliest arrival first.

Where jobs share GPUs by an allocation matrix, the earlier a job the more its speed counts (Gavel, section 4.2).
"""

from operator import attrgetter

from synergy_core.policies.queue import Queue, Ranking, ranked
from synergy_core.policies.time_shares import ranked_by

_WITH_PAIRS = ranked_by("fifo")


def rank(queue: Queue) -> Ranking:
    """Jobs by arrival."""
    return ranked(queue, attrgetter("arrival_s")) if queue.pairs is None else _WITH_PAIRS(queue)
