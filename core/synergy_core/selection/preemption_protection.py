"""Who has only just begun and is left alone: what a preemption costs is worth paying only now and then.

To preempt a job costs the seconds in which it holds its GPUs without a step: it checkpoints, and restores when its turn
comes again (Tiresias, section 2.2, figures 4 and 5). Nobody knows what the other job will make of the GPUs, but it is
known what the pause takes, so each run is to last as long as its pause is worth: a run of at least `payback` times the
pause's seconds loses at most one part in `payback` + 1 of its GPUs' time to it, whatever the policy does.
"""

from collections.abc import Iterable

from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job


def protected(jobs: Iterable[Job], now: float, config: PlanConfig) -> frozenset[str]:
    """Running jobs that no other may displace yet, by name."""
    if config.minimum_run_s <= 0 and config.preemption_payback <= 0:
        return frozenset()
    return frozenset(job.name for job in jobs if _is_protected(job, now, config))


def _is_protected(job: Job, now: float, config: PlanConfig) -> bool:
    if job.running is None or job.run_started_s is None:
        return False
    return now - job.run_started_s < least_run_s(job, config)


def least_run_s(job: Job, config: PlanConfig) -> float:
    """For how long nobody may displace a run of the job."""
    return max(config.minimum_run_s, config.preemption_payback * job.preemption_cost_s)
