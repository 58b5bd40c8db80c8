"""First in, first out: the earliest arrival first, on whatever GPUs it may use.

Where pairs of jobs share GPUs by an allocation matrix it is Gavel's (section 4.2), as `gavel-fifo` always is: the
earlier a job the more its speed counts, and each is where it gains most by it, moved there when others end.
"""

from operator import attrgetter

from synergy_core.policies.queue import Queue, Ranking, ranked
from synergy_core.policies.rounds.time_shares import ranked_by

_by_shares = ranked_by("gavel-fifo")


def rank(queue: Queue) -> Ranking:
    """Jobs by arrival; with pairs also their GPU types."""
    return in_line(queue) if queue.pairs is None else _by_shares(queue)


def in_line(queue: Queue) -> Ranking:
    """Jobs by arrival."""
    return ranked(queue, attrgetter("arrival_s"))
