"""Priority discretisation: K queues by attained service, with promotion (Tiresias, section 3.2.3, Pseudocode 2).

Queue i holds the jobs whose attained service W t lies in [threshold i-1, threshold i), in GPU-seconds; the last has no
upper end. A job falls to the next queue when it crosses its queue's threshold. One that waits below the first queue and
has waited at least `promote_knob` times as long as it has run goes back to the first queue, and both of its clocks
begin at zero again: the plan names it (`Plan.promoted`), and who carries the plan out notes its clocks
(`Job.promoted_gpu_s`, `Job.promoted_waiting_s`).

Within a queue jobs stand in the order in which they first started; those that never did come after them, by arrival.
A promoted job keeps its start time, so it stands ahead of all that started since, and nothing that arrives later can
pass it: that bounds its wait.
"""

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from synergy_core.model import Job, PriorityQueues
from synergy_core.policies.queue import Queue, Ranking


@dataclass(frozen=True, slots=True)
class Standing:
    """A job in its queue, 0 the first."""

    job: Job
    queue: int
    service_gpu_s: float
    """Attained service since it was last promoted."""
    promoted: bool

    @property
    def by_start(self) -> tuple[float, float, str]:
        """Sorts by first start; those that never started come last, by arrival."""
        job = self.job
        return (math.inf if job.started_s is None else job.started_s, job.arrival_s, job.name)


def standing(job: Job, queues: PriorityQueues) -> Standing:
    """Where a job stands."""
    service = max(0.0, job.attained_gpu_s - job.promoted_gpu_s)
    queue = bisect_right(queues.thresholds_gpu_s, service)
    if _starves(job, queue, service, queues):
        return Standing(job, 0, 0.0, promoted=True)
    return Standing(job, queue, service, promoted=False)


def _starves(job: Job, queue: int, service_gpu_s: float, queues: PriorityQueues) -> bool:
    if queue == 0 or job.running is not None or queues.promote_knob is None:
        return False
    waited_s = job.waiting_s - job.promoted_waiting_s
    return waited_s >= queues.promote_knob * service_gpu_s / job.gpus


def rank_by_queue(queue: Queue, within: Callable[[list[Standing], int], list[Standing]]) -> Ranking:
    """The line of all queues, the first queue first; `within` sorts the jobs of queue `i`, given in no order."""
    queues: list[list[Standing]] = [[] for _ in range(len(queue.queues.thresholds_gpu_s) + 1)]
    for job in queue.jobs:
        one = standing(job, queue.queues)
        queues[one.queue].append(one)
    line = [one for index, members in enumerate(queues) for one in within(members, index)]
    return Ranking(
        tuple(one.job.name for one in line), promoted=tuple(sorted(one.job.name for one in line if one.promoted))
    )


def by_start(members: list[Standing], _queue: int) -> list[Standing]:
    """First started, first in line."""
    return sorted(members, key=lambda one: one.by_start)
