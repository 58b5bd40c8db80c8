"""An ordering policy of one's own: `kube-synergy simulate --policy shortest_widest:rank ...` in this folder."""

import math

from synergy_simulator import Job, Queue, Ranking, ranked


def rank(queue: Queue) -> Ranking:
    """The shortest remaining time first; of jobs within the same hour, the one with the most GPUs."""

    def key(job: Job) -> tuple[float, int]:
        remaining = queue.remaining_s(job)
        return (math.inf if remaining is None else remaining // 3600, -job.gpus)

    return ranked(queue, key)
