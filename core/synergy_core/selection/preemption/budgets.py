"""Preemption budgets: how many times an hour a job, and the jobs of a tenant, may be preempted.

A job whose budget is spent counts as protected: neither the policy, nor a class, nor a guarantee displaces it. A run
that ends because its node is gone is no preemption that a plan chose, and no budget prevents it.

One plan may displace several jobs of a tenant. So it may displace only as many as the tenant's budget has left, the
lowest in the queue; all others are protected.
"""

from collections.abc import Container, Sequence

from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Snapshot, Tenant

HOUR_S = 3600.0


def spent(job: Job, now: float) -> int:
    """How many times the job was preempted within the last hour."""
    return sum(moment > now - HOUR_S for moment in job.preempted_s)


def out_of_budget(
    snapshot: Snapshot, config: PlanConfig, names: Sequence[str], protected: Container[str] = ()
) -> frozenset[str]:
    """Running jobs that no other may displace, because a budget would be exceeded.

    `names` is the queue, the highest first. `protected` jobs are not displaced anyway.
    """
    most = config.preemptions_per_hour
    budgets = [tenant for tenant in snapshot.tenants if tenant.preemptions_per_hour is not None]
    if most is None and not budgets:
        return frozenset()
    trains = [job for job in snapshot.jobs if job.purpose == "train" and job.preemptible]
    running = [job for job in trains if job.running is not None]
    found = {job.name for job in running if most is not None and spent(job, snapshot.now) >= most}
    rank = {name: place for place, name in enumerate(names)}
    for tenant in budgets:
        below = _below(tenant, snapshot.tenants)
        left = (tenant.preemptions_per_hour or 0) - _spent_by(below, snapshot)
        open_ = [job for job in running if job.tenant in below and job.name not in found and job.name not in protected]
        open_.sort(key=lambda job: (-rank.get(job.name, -1), job.name))
        found |= {job.name for job in open_[max(0, left) :]}
    return frozenset(found)


def _below(tenant: Tenant, tenants: Sequence[Tenant]) -> set[str]:
    """Names of a tenant and of all below it."""
    found, new = set[str](), {tenant.name}
    while new:
        found |= new
        new = {other.name for other in tenants if other.parent in new} - found
    return found


def _spent_by(below: Container[str], snapshot: Snapshot) -> int:
    gone = sum(tenant.preempted for tenant in snapshot.tenants if tenant.name in below)
    return gone + sum(spent(job, snapshot.now) for job in snapshot.jobs if job.tenant in below)
