"""2D-LAS: least attained service, GPUs times time, in discretised queues (Tiresias, sections 3.2.2 and 3.2.3).

It does not need to know how long a job will take. Without thresholds the priorities are not discretised, and it is
`las`.
"""

from synergy_core.policies import las
from synergy_core.policies.discretised.discretised_queues import by_start, rank_by_queue
from synergy_core.policies.queue import Queue, Ranking


def rank(queue: Queue) -> Ranking:
    """Jobs by queue, and within a queue by first start."""
    return rank_by_queue(queue, by_start) if queue.queues.thresholds_gpu_s else las.rank(queue)
