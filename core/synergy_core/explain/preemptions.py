"""Why each run of a plan ends that a plan ends: for which jobs, and by which rule.

The walk along the queue tells for whom it takes a place (`Plan.displaced`). What is left follows from the plan: the
policy gives a job other GPUs, or none.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from synergy_core.model.answer import Displaced, Plan
from synergy_core.model.cluster import closes
from synergy_core.model.snapshot import Allocation, Job, Snapshot

_MOST_NAMED = 3


class PreemptionRule(StrEnum):
    """By which rule a run ends. The first that applies counts."""

    NODE = "Node"
    """A node of its place is gone, or must be empty before another round ends."""
    URGENT = "Urgent"
    """A job of an urgent class has its GPUs at once."""
    GUARANTEE = "Guarantee"
    """A job of another tenant has its GPUs, within what that tenant is guaranteed."""
    PRIORITY_CLASS = "PriorityClass"
    """A job of a higher class has its GPUs."""
    MOVE = "Move"
    """The job itself goes on elsewhere: the policy gives it other GPUs."""
    TENANT_LIMIT = "TenantLimit"
    """Its tenant holds no more than it may."""
    POLICY = "Policy"
    """The policy's order."""


@dataclass(frozen=True, slots=True)
class Preemption:
    """A run that ends."""

    job: str
    rule: PreemptionRule
    by: tuple[str, ...] = ()
    """The job that it gives way to, else the first few that get the GPUs; empty if no job gets them."""


def preemptions(snapshot: Snapshot, plan: Plan, *, across: bool) -> tuple[Preemption, ...]:
    """One for each job of `Plan.preempted`, in its order. `across`: classes count across tenants."""
    if not plan.preempted:
        return ()
    return _Causes(snapshot, plan, across=across).of_all(plan.preempted)


class _Causes:
    """What a plan changes on nodes, and what it says of its preemptions."""

    def __init__(self, snapshot: Snapshot, plan: Plan, *, across: bool) -> None:
        self._jobs = {job.name: job for job in snapshot.jobs}
        self._given = {one.job: one for one in plan.allocations}
        self._urgent = {one.job: one.urgent for one in plan.gave_way}
        self._displaced = {one.job: one for one in plan.displaced}
        self._across = across
        self._there = {node.name for node in snapshot.nodes if not closes(node, snapshot)}
        self._newcomers: dict[str, list[str]] = {}
        """By node, jobs that get GPUs there and had none, by name."""
        for one in plan.allocations:
            before = _nodes(self._jobs[one.job].running)
            for node in sorted(_nodes(one) - before):
                self._newcomers.setdefault(node, []).append(one.job)

    def of_all(self, names: Iterable[str]) -> tuple[Preemption, ...]:
        return tuple(self._of(self._jobs[name]) for name in names)

    def _of(self, job: Job) -> Preemption:
        if job.name in self._urgent:
            return Preemption(job.name, PreemptionRule.URGENT, (self._urgent[job.name],))
        if not _nodes(job.running) <= self._there:
            return Preemption(job.name, PreemptionRule.NODE)
        displaced = self._displaced.get(job.name)
        if displaced is not None:
            return self._of_displaced(job, displaced)
        rule = PreemptionRule.MOVE if job.name in self._given else PreemptionRule.POLICY
        return Preemption(job.name, rule, self._successors(job))

    def _of_displaced(self, job: Job, displaced: Displaced) -> Preemption:
        by = displaced.by[:_MOST_NAMED]
        if displaced.cause == "guarantee":
            return Preemption(job.name, PreemptionRule.GUARANTEE, by)
        if displaced.cause == "limit":
            return Preemption(job.name, PreemptionRule.TENANT_LIMIT, self._successors(job))
        higher = tuple(name for name in by if self._is_of_higher_class(self._jobs[name], job))
        if higher:
            return Preemption(job.name, PreemptionRule.PRIORITY_CLASS, higher)
        if job.name in self._given:
            return Preemption(job.name, PreemptionRule.MOVE, by)
        return Preemption(job.name, PreemptionRule.POLICY, by)

    def _is_of_higher_class(self, newcomer: Job, job: Job) -> bool:
        return newcomer.priority > job.priority and (self._across or newcomer.tenant == job.tenant)

    def _successors(self, job: Job) -> tuple[str, ...]:
        """The first few jobs that get GPUs on the nodes of the run."""
        found = {name for node in _nodes(job.running) for name in self._newcomers.get(node, ())}
        return tuple(sorted(found - {job.name})[:_MOST_NAMED])


def _nodes(allocation: Allocation | None) -> set[str]:
    return set() if allocation is None else {share.node for share in allocation.workers}
