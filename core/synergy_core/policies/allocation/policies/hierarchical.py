"""Hierarchical fairness (Gavel, section 4.3): weighted fairness over tenants, fairness or FIFO among a tenant's jobs.

Normalised throughput is throughput / throughput at the equal share * scale factor; each tenant's total rises at its
weight. A job without a tenant is a tenant of its own, with the job's weight.
"""

import numpy as np

from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.policy import Found, Policy, Setting, setting
from synergy_core.policies.allocation.problem import Problem, effective_throughput
from synergy_core.policies.allocation.programme.progressive_filling import Fill, Group, fill
from synergy_core.policies.allocation.shares import equal_share_throughput


def _unit(problem: Problem) -> Floats:
    return equal_share_throughput(problem) / problem.scale


def objective(problem: Problem, x: Floats) -> float:
    """The first level: the smallest normalised throughput / w_m^job over the jobs that have weight at first."""
    rates = np.where(problem.tenant < 0, problem.weight, 0.0)
    for index, tenant in enumerate(problem.tenants):
        jobs = _queue(problem, index)
        if tenant.policy == "fifo":
            rates[jobs[:1]] = tenant.weight
        else:
            rates[jobs] = tenant.weight * problem.weight[jobs] / problem.weight[jobs].sum()
    some = rates > 0
    normalised = effective_throughput(problem, x) / _unit(problem)
    return float((normalised[some] / rates[some]).min())


def allocate(problem: Problem, budget: Budget) -> Found:
    """See the module."""
    unit = _unit(problem)
    here = setting(problem, budget, unit, problem.weight, problem.tenant.astype(float), _places(problem))
    units = here.of_classes(unit)
    start = Fill(
        level=np.zeros(len(units)),
        limit=here.programme.fastest / units,
        weight=here.of_classes(problem.weight),
        members=here.programme.members,
        rises=np.ones(len(units), dtype=bool),
        groups=_groups(problem, here),
        on_their_own=here.of_classes(problem.tenant.astype(float)) < 0,
    )
    time, to_the_end = fill(here, start, units)
    return Found(here.x(time), "optimal" if to_the_end else "time-limit")


def _queue(problem: Problem, tenant: int) -> np.typing.NDArray[np.int64]:
    """Jobs of a tenant by arrival."""
    jobs = np.flatnonzero(problem.tenant == tenant)
    return np.asarray(jobs[np.argsort(problem.arrival[jobs], kind="stable")])


def _places(problem: Problem) -> Floats:
    """J: place in the tenant's queue if it is served in order: no two of these jobs are merged; 0 elsewhere."""
    places = np.zeros(len(problem.jobs))
    for index, tenant in enumerate(problem.tenants):
        if tenant.policy == "fifo":
            queue = _queue(problem, index)
            places[queue] = np.arange(1, len(queue) + 1)
    return places


def _groups(problem: Problem, here: Setting) -> tuple[Group, ...]:
    groups = []
    for index, tenant in enumerate(problem.tenants):
        classes = here.merged.job_class[_queue(problem, index)]
        members = classes[np.sort(np.unique(classes, return_index=True)[1])]
        if len(members):
            groups.append(Group(members, tenant.weight, tenant.policy == "fifo"))
    return tuple(groups)


POLICY = Policy(
    allocate,
    objective,
    "first level: the smallest normalised throughput (throughput / throughput at the equal share * scale factor) "
    "/ the job's part of its tenant's weight",
)
