"""2D-Gittins: the job that is likeliest to end with a little more service first (Tiresias, sections 3.2.2 and 3.2.3).

What it knows of the jobs' lengths is the service that finished jobs have needed. In queue i the service quantum is the
queue's upper threshold; the last queue has none, and goes by first start. Without a distribution it is `2d-las`
(Pseudocode 1, line 2); without thresholds each job's quantum is the best one, and the index is not discretised.

In the example of the paper's figure 7 the index that is not discretised serves job 2 to its end before job 3 (average
JCT 9.3); the paper's 10 comes of a queue that ends at the shortest service of the distribution, 4.
"""

import math

from synergy_core.policies import two_dimensional_las
from synergy_core.policies.discretised.discretised_queues import QueuePosition, by_start, rank_by_queue
from synergy_core.policies.discretised.gittins_index import Floats, ServiceDistribution
from synergy_core.policies.queue import Queue, Ranking, ranked


def rank(queue: Queue) -> Ranking:
    """Jobs by queue, and within a queue by their index, the largest first; in the last queue by first start.

    Promoted jobs lead the first queue.
    """
    if not queue.queues.service_gpu_s:
        return two_dimensional_las.rank(queue)
    distribution = ServiceDistribution(queue.queues.service_gpu_s)
    thresholds = queue.queues.thresholds_gpu_s
    if not thresholds:
        best = distribution.best_index([job.attained_gpu_s for job in queue.jobs])
        index_of = {job.name: index for job, index in zip(queue.jobs, best.tolist(), strict=True)}
        return ranked(queue, lambda job: -index_of[job.name])

    def within(members: list[QueuePosition], index: int) -> list[QueuePosition]:
        if index == len(thresholds):
            return by_start(members, index)
        indices = distribution.index([one.service_gpu_s for one in members], thresholds[index])
        return _by_index(members, indices)

    return rank_by_queue(queue, within)


def _by_index(members: list[QueuePosition], indices: Floats) -> list[QueuePosition]:
    def key(pair: tuple[float, QueuePosition]) -> tuple[float, tuple[bool, float, float, str]]:
        index, one = pair
        return (-math.inf if one.goes_first else -index, one.by_start)

    both = sorted(zip(indices.tolist(), members, strict=True), key=key)
    return [one for _, one in both]
