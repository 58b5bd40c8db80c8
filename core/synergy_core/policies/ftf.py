"""Finish-time fairness (Themis, as in Synergy, section 2.2, and Gavel, section 4.2).

rho = (time since arrival + time that the remaining steps take) / time that all steps take on the job's own part of the
cluster. The job that is treated worst, with the largest rho, comes first. The times are at the GPU-proportional share;
the job's own part is one nth of the cluster's GPUs, n being the number of jobs, and never more than the job can use.
"""

from synergy_core.model.snapshot import Job
from synergy_core.policies.queue import Queue, Ranking, ranked

_LEAST_S = 1e-3


def rank(queue: Queue) -> Ranking:
    """Jobs by rho, the largest first.

    A job of unknown length is judged by what it has had: time since arrival / time that its service would have taken on
    its own part; one that never ran comes first. So it cannot be passed over for ever.
    """
    jobs = len(queue.jobs)

    def rho(job: Job) -> float:
        slower_alone = max(1.0, jobs * job.gpus / queue.gpus) if queue.gpus else 1.0
        age = max(0.0, queue.now - job.arrival_s)
        remaining = queue.remaining_s(job)
        ran = job.attained_gpu_s / job.gpus
        if remaining is None:
            return age / (ran * slower_alone) if ran > 0.0 else float("inf")
        if job.steps_total is None:
            return (age + remaining) / max(_LEAST_S, (ran + remaining) * slower_alone)
        whole = job.steps_total / (queue.steps_per_s(job) * (1.0 - job.pause_share))
        return (age + remaining) / (whole * slower_alone)

    return ranked(queue, lambda job: -rho(job))
