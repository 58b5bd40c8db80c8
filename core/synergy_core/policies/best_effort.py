"""First in, first out without preemption, where a job that does not fit is passed over (Tiresias' "best effort")."""

from dataclasses import replace

from synergy_core.policies.fifo import in_line
from synergy_core.policies.queue import Queue, Ranking


def rank(queue: Queue) -> Ranking:
    """Jobs by arrival. Later jobs pass one that does not fit yet, and running jobs run to their end."""
    return replace(in_line(queue), preempts=False)
