"""Priority discretisation: K queues by attained service, with promotion (Tiresias, section 3.2.3, Pseudocode 2).

Queue i holds the jobs whose attained service W t is in [threshold i-1, threshold i), in GPU-seconds; the last has no
upper end. A job falls to the next queue when it crosses its queue's threshold.

A waiting job is promoted once it has waited at least `promote_knob` times as long as it has run (STARVELIMIT). It goes
to the head of the first queue, and both of its clocks start again at zero. The plan names it (`Plan.promoted`), and the
caller records its clocks (`Job.promoted_gpu_s`, `Job.promoted_waiting_s`). A job that has not used up the first queue
counts as if it had, also one that never ran. With a run of 0 s it would starve from its first moment, and the queues
would be FIFO. Its limit is `promote_knob` times as long as the first queue would let it run: first threshold / GPUs.

Within a queue, jobs are in the order in which they first started. Jobs that never started come after them, by arrival.
Promoted jobs are ahead of all others of the first queue, by arrival, until they have used it up again. A round may
displace any job below them, and no later arrival can pass them, so a job's wait is bounded, also that of a wide job
whose GPUs never fall free at once. Jobs that a round cannot displace (those that may not be preempted, and protected
runs) delay it only until they end or lose their protection: nodes are reserved for it (`node_reservation`).
"""

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

from synergy_core.model.config import PriorityQueues
from synergy_core.model.snapshot import Job
from synergy_core.policies.queue import Queue, Ranking


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """A job in its queue, 0 the first."""

    job: Job
    queue: int
    service_gpu_s: float
    """Attained service since it was last promoted."""
    promoted: bool

    @property
    def goes_first(self) -> bool:
        """Whether it was promoted, now or earlier, and has not used up the first queue since."""
        return self.promoted or (self.queue == 0 and self.job.promoted_waiting_s > 0.0)

    @property
    def by_start(self) -> tuple[bool, float, float, str]:
        """Sorts by first start; promoted ones come first, those that never started last, both by arrival."""
        job = self.job
        if self.goes_first:
            return (False, 0.0, job.arrival_s, job.name)
        return (True, math.inf if job.started_s is None else job.started_s, job.arrival_s, job.name)


def standing(job: Job, queues: PriorityQueues) -> QueuePosition:
    """A job's position in the queues."""
    service = max(0.0, job.attained_gpu_s - job.promoted_gpu_s)
    queue = bisect_right(queues.thresholds_gpu_s, service)
    if _starves(job, service, queues):
        return QueuePosition(job, 0, 0.0, promoted=True)
    return QueuePosition(job, queue, service, promoted=False)


def _starves(job: Job, service_gpu_s: float, queues: PriorityQueues) -> bool:
    if job.running is not None or queues.promote_knob is None:
        return False
    waited_s = job.waiting_s - job.promoted_waiting_s
    return waited_s >= queues.promote_knob * max(service_gpu_s, queues.thresholds_gpu_s[0]) / job.gpus


def rank_by_queue(queue: Queue, within: Callable[[list[QueuePosition], int], list[QueuePosition]]) -> Ranking:
    """The line of all queues, the first queue first; `within` sorts the jobs of queue `i`, given in no order."""
    queues: list[list[QueuePosition]] = [[] for _ in range(len(queue.queues.thresholds_gpu_s) + 1)]
    for job in queue.jobs:
        one = standing(job, queue.queues)
        queues[one.queue].append(one)
    line = [one for index, members in enumerate(queues) for one in within(members, index)]
    return Ranking(
        tuple(one.job.name for one in line),
        promoted=tuple(sorted(one.job.name for one in line if one.promoted)),
        first=tuple(one.job.name for one in line if one.goes_first),
    )


def by_start(members: list[QueuePosition], _queue: int) -> list[QueuePosition]:
    """The job that started first is first."""
    return sorted(members, key=lambda one: one.by_start)
