"""Preemption budgets: how many times an hour a job, and the jobs of a tenant, may be preempted.

A job whose own budget is spent counts as protected: neither the policy, nor a class, nor a guarantee displaces it. A
run that ends because its node is gone is no preemption that a plan chose, and no budget prevents it.

One plan may preempt several jobs of a tenant. Which of them, only the walk along the queue knows. So a plan is made
without the budgets of tenants first. If it exceeds some, their jobs are protected from then on, and it is made again.
The budgets that it exceeded are spent in the order in which the plan took places: guarantees come first. All jobs that
give way to the same job may be preempted, or none of them: half a place is worth nothing.

A guarantee waits for the budgets of tenants for an hour at most. After that the jobs in its way may be preempted
whatever their tenants' budgets say, and count.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from synergy_core.model.answer import Plan
from synergy_core.model.cluster import closes
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Snapshot

HOUR_S = 3600.0


def spent(job: Job, now: float) -> int:
    """How many times the job was preempted within the last hour."""
    return sum(moment > now - HOUR_S for moment in job.preempted_s)


def out_of_own_budget(snapshot: Snapshot, config: PlanConfig) -> frozenset[str]:
    """Running jobs that no other may displace, because each was preempted as often as a job may be."""
    most = config.preemptions_per_hour
    if most is None:
        return frozenset()
    return frozenset(job.name for job in _preemptible(snapshot) if spent(job, snapshot.now) >= most)


class TenantBudgets:
    """The preemption budgets of tenants at one moment. It is false where no tenant has one."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._tenants = {tenant.name: tenant for tenant in snapshot.tenants}
        self._limited = {
            tenant.name: tenant.preemptions_per_hour
            for tenant in snapshot.tenants
            if tenant.preemptions_per_hour is not None
        }

    def __bool__(self) -> bool:
        return bool(self._limited)

    @cached_property
    def left(self) -> Mapping[str, int]:
        """By tenant that has a budget, how many of its jobs and of those below it may still be preempted."""
        gone = dict.fromkeys(self._limited, 0)
        for tenant in self._snapshot.tenants:
            for name in self._above(tenant.name):
                gone[name] += tenant.preempted
        for job in self._snapshot.jobs:
            for name in self.of(job):
                gone[name] += spent(job, self._snapshot.now)
        return {name: max(0, most - gone[name]) for name, most in self._limited.items()}

    def of(self, job: Job) -> list[str]:
        """The tenants above a job that have budgets."""
        return self._above(job.tenant)

    def within(self, units: Iterable[Sequence[Job]], before: Iterable[Job] = ()) -> list[Sequence[Job]]:
        """The units of jobs, in their order, that may all be preempted, once those `before` are. A unit that does not
        fit is passed over."""
        account = _Account(self, before)
        return [unit for unit in units if account.takes(unit)]

    def held_back(self, plan: Plan, names: Sequence[str], protected: frozenset[str]) -> frozenset[str]:
        """Running jobs that the plan must not preempt, because it exceeds budgets of their tenants; none if it
        exceeds none. `names` is its queue, the highest first. `protected` jobs are not preempted anyway."""
        jobs = {job.name: job for job in self._snapshot.jobs}
        ended = [job for job in map(jobs.__getitem__, plan.preempted) if self._counts(job, protected)]
        overdue = self._given_to_overdue(plan, jobs)
        exceeded = _Account(self, ended).overdrawn
        open_ = [job for job in ended if job.name not in overdue and exceeded & set(self.of(job))]
        if not open_:
            return frozenset()
        may = {job.name for unit in self._allowed(plan, ended, names, overdue) for job in unit} | overdue
        closed = exceeded & {name for job in open_ for name in self.of(job)}
        return frozenset(
            job.name
            for job in _preemptible(self._snapshot)
            if job.name not in may and job.name not in protected and closed & set(self.of(job))
        )

    def _allowed(
        self, plan: Plan, ended: Sequence[Job], names: Sequence[str], overdue: frozenset[str]
    ) -> list[Sequence[Job]]:
        """Of the jobs whose runs the plan ends, those that may be preempted, by the job that they give way to. Those
        that give way to none come last, the lowest in the queue first."""
        rest = {job.name: job for job in ended if job.name not in overdue}
        units: dict[tuple[str, ...], list[Job]] = {}
        for one in plan.displaced:
            if one.job in rest:
                units.setdefault(one.by or (one.job,), []).append(rest.pop(one.job))
        rank = {name: place for place, name in enumerate(names)}
        last = [(job,) for job in sorted(rest.values(), key=lambda job: -rank.get(job.name, -1))]
        return self.within([*units.values(), *last], (job for job in ended if job.name in overdue))

    def _given_to_overdue(self, plan: Plan, jobs: Mapping[str, Job]) -> frozenset[str]:
        """Jobs that the plan displaces for guarantees of jobs that have waited too long."""
        return frozenset(
            one.job
            for one in plan.displaced
            if one.cause == "guarantee" and any(jobs[name].waiting_s >= HOUR_S for name in one.by)
        )

    def _counts(self, job: Job, protected: frozenset[str]) -> bool:
        """A plan chose to preempt the job: none of its nodes is gone."""
        if job.running is None or job.name in protected or not _may_be_preempted(job):
            return False
        return all(share.node in self._there for share in job.running.workers)

    @cached_property
    def _there(self) -> frozenset[str]:
        return frozenset(node.name for node in self._snapshot.nodes if not closes(node, self._snapshot))

    def _above(self, name: str) -> list[str]:
        found = []
        while name in self._tenants:
            if name in self._limited:
                found.append(name)
            name = self._tenants[name].parent or ""
        return found


NO_BUDGETS: Final = TenantBudgets(Snapshot(nodes=(), jobs=()))


class _Account:
    """What is left of budgets while jobs are preempted one after the other."""

    def __init__(self, budgets: TenantBudgets, before: Iterable[Job] = ()) -> None:
        self._budgets = budgets
        self._left = dict(budgets.left)
        for job in before:
            self._spend(job, 1)

    @property
    def overdrawn(self) -> set[str]:
        """Tenants whose budgets are exceeded."""
        return {name for name, left in self._left.items() if left < 0}

    def takes(self, unit: Sequence[Job]) -> bool:
        """Spend budgets for all jobs of the unit, if they have enough left."""
        for job in unit:
            self._spend(job, 1)
        if all(self._left[name] >= 0 for job in unit for name in self._budgets.of(job)):
            return True
        for job in unit:
            self._spend(job, -1)
        return False

    def _spend(self, job: Job, times: int) -> None:
        for name in self._budgets.of(job):
            self._left[name] -= times


def _preemptible(snapshot: Snapshot) -> list[Job]:
    return [job for job in snapshot.jobs if job.running is not None and _may_be_preempted(job)]


def _may_be_preempted(job: Job) -> bool:
    return job.purpose == "train" and job.preemptible
