"""First in, first out: the earliest arrival first.

Where jobs share GPUs by an allocation matrix, and on GPU types that differ in speed, it is Gavel's (section 4.2): the
earlier a job the more its speed counts, and each is where it gains most by it, moved there when others end.
"""

from operator import attrgetter

from synergy_core.policies.queue import Queue, Ranking, ranked
from synergy_core.policies.time_shares import ranked_by

_by_shares = ranked_by("fifo")


def rank(queue: Queue) -> Ranking:
    """Jobs by arrival, with their GPU types where these differ."""
    by_shares = queue.pairs is not None or _types_differ(queue)
    return _by_shares(queue) if by_shares else in_line(queue)


def in_line(queue: Queue) -> Ranking:
    """Jobs by arrival."""
    return ranked(queue, attrgetter("arrival_s"))


def _types_differ(queue: Queue) -> bool:
    if sum(gpus > 0 for gpus in queue.gpus_of.values()) < 2:
        return False
    return any(len({speed for speed in queue.speeds(job).values() if speed > 0.0}) > 1 for job in queue.jobs)
