"""The preemption budgets of tenants (`spec.caps.maxPreemptionsPerHour`) and what was spent of them. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from synergy_api.cluster.tenancy import Tenancy
from synergy_api.timestamps import parse_time
from synergy_core.model import snapshot as core
from synergy_extender.cluster.views import JobView, Key
from synergy_extender.snapshot.entitlements import Entitlements

_HOUR_S = 3600.0


def preempted_s(job: JobView, now: float) -> tuple[float, ...]:
    """When plans ended runs of the job within the last hour, Unix time. Clocks that were ahead count as now."""
    moments = (min(now, parse_time(one.at)) for one in job.status.preemptions or () if one.rule != "Node")
    return tuple(moment for moment in moments if moment > now - _HOUR_S)


def preempted_lately(
    jobs: Mapping[Key, JobView], entitled: Entitlements, planned: Set[str], now: float
) -> Counter[str]:
    """By tenant, how many times its jobs that are in no plan were preempted within the last hour: finished jobs for
    example. Deleted ones are forgotten."""
    found = Counter[str]()
    for key, job in jobs.items():
        if job.status.preemptions and str(key) not in planned and key in entitled.by_job:
            found[entitled.by_job[key].tenant] += len(preempted_s(job, now))
    return found


def with_budgets(tenants: Sequence[core.Tenant], tenancy: Tenancy, spent: Mapping[str, int]) -> tuple[core.Tenant, ...]:
    """The tenants of a plan with their budgets. Those that have one and are not in the plan yet are added."""
    budgets = {
        tenant.name: tenant.spec.caps.max_preemptions_per_hour
        for tenant in tenancy.tenants
        if tenant.spec.caps.max_preemptions_per_hour is not None
    }
    if not budgets:
        return tuple(tenants)
    weights = {tenant.name: tenant.spec.weight for tenant in tenancy.tenants}
    there = {tenant.name for tenant in tenants}
    added = (core.Tenant(name, weights[name]) for name in sorted(budgets.keys() - there))
    return tuple(
        replace(tenant, preemptions_per_hour=budgets.get(tenant.name), preempted=spent.get(tenant.name, 0))
        for tenant in (*tenants, *added)
    )
