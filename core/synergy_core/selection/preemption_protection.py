"""Protects a young run from preemption, in proportion to what the preemption costs.

A preempted job checkpoints, and later restores. During these seconds it holds its GPUs without a step (Tiresias,
section 2.2, figures 4 and 5). The gain of another job is not known, but the cost is. So a run is protected until it has
lasted `payback` times its preemption cost. It then loses at most one part in `payback` + 1 of its GPU time to
preemptions, whatever the policy.
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
    """Seconds for which a run of the job is protected."""
    return max(config.minimum_run_s, config.preemption_payback * job.preemption_cost_s)
