"""First in, first out with head-of-line blocking and without preemption: YARN's capacity scheduler as it was used in
the production cluster that Tiresias is compared with (Tiresias, sections 2.2 and 5.1, appendix A)."""

from dataclasses import replace

from synergy_core.policies.fifo import in_line
from synergy_core.policies.queue import Queue, Ranking


def rank(queue: Queue) -> Ranking:
    """Jobs by arrival. No job passes one that does not fit yet, and running jobs run to their end."""
    return replace(in_line(queue), preempts=False, passes=False)
