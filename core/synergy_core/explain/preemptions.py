"""Why each run of a plan ends that a plan ends: for which jobs, and by which rule."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from synergy_core.model.answer import Plan
from synergy_core.model.cluster import closes
from synergy_core.model.snapshot import Allocation, Job, Snapshot, Tenant

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
    """Names of the first few jobs that get the GPUs; empty if no job gets them."""


def preemptions(snapshot: Snapshot, plan: Plan, *, across: bool) -> tuple[Preemption, ...]:
    """One for each job of `Plan.preempted`, in its order. `across`: classes count across tenants."""
    if not plan.preempted:
        return ()
    return _Causes(snapshot, plan, across=across).of_all(plan.preempted)


class _Causes:
    """What a plan changes on nodes."""

    def __init__(self, snapshot: Snapshot, plan: Plan, *, across: bool) -> None:
        self._jobs = {job.name: job for job in snapshot.jobs}
        self._given = {one.job: one for one in plan.allocations}
        self._urgent = {one.job: one.urgent for one in plan.gave_way}
        self._tenants = {tenant.name: tenant for tenant in snapshot.tenants}
        self._across = across
        self._there = {node.name for node in snapshot.nodes if not closes(node, snapshot)}
        self._held = self._held_after(plan.allocations)
        self._newcomers: dict[str, list[str]] = {}
        """By node, jobs that get GPUs there and had none, by name."""
        for one in plan.allocations:
            before = _nodes(self._jobs[one.job].running)
            for node in sorted(_nodes(one) - before):
                self._newcomers.setdefault(node, []).append(one.job)

    def of_all(self, names: Iterable[str]) -> tuple[Preemption, ...]:
        return tuple(self._of(self._jobs[name]) for name in names)

    def _of(self, job: Job) -> Preemption:
        nodes = _nodes(job.running)
        if job.name in self._urgent:
            return Preemption(job.name, PreemptionRule.URGENT, (self._urgent[job.name],))
        if not nodes <= self._there:
            return Preemption(job.name, PreemptionRule.NODE)
        found = sorted({name for node in nodes for name in self._newcomers.get(node, ()) if name != job.name})
        by_rule: dict[PreemptionRule, list[str]] = {}
        for name in found:
            by_rule.setdefault(self._rule(job, self._jobs[name]), []).append(name)
        for rule in (PreemptionRule.GUARANTEE, PreemptionRule.PRIORITY_CLASS):
            if rule in by_rule:
                return Preemption(job.name, rule, tuple(by_rule[rule][:_MOST_NAMED]))
        others = tuple(found[:_MOST_NAMED])
        if job.name in self._given:
            return Preemption(job.name, PreemptionRule.MOVE, others)
        if self._is_at_limit(job):
            return Preemption(job.name, PreemptionRule.TENANT_LIMIT, others)
        return Preemption(job.name, PreemptionRule.POLICY, others)

    def _rule(self, job: Job, newcomer: Job) -> PreemptionRule:
        if newcomer.tenant != job.tenant and self._is_guaranteed(newcomer, job):
            return PreemptionRule.GUARANTEE
        if newcomer.priority > job.priority and (self._across or newcomer.tenant == job.tenant):
            return PreemptionRule.PRIORITY_CLASS
        return PreemptionRule.POLICY

    def _is_guaranteed(self, newcomer: Job, job: Job) -> bool:
        gpu_type = self._given[newcomer.name].gpu_type
        apart = set(self._above(newcomer.tenant)) - set(self._above(job.tenant))
        return any(
            0 < self._held.get((name, gpu_type), 0) <= self._tenants[name].guarantee.get(gpu_type, 0) for name in apart
        )

    def _is_at_limit(self, job: Job) -> bool:
        gpu_type = "" if job.running is None else job.running.gpu_type
        return any(
            self._held.get((name, gpu_type), 0) + job.gpus > _most(self._tenants[name], gpu_type)
            for name in self._above(job.tenant)
        )

    def _held_after(self, allocations: Iterable[Allocation]) -> Mapping[tuple[str, str], int]:
        held: dict[tuple[str, str], int] = {}
        for one in allocations:
            for name in self._above(self._jobs[one.job].tenant):
                key = name, one.gpu_type
                held[key] = held.get(key, 0) + sum(share.gpus for share in one.workers)
        return held

    def _above(self, name: str) -> list[str]:
        """A tenant and those above it."""
        found: list[str] = []
        while name in self._tenants:
            found.append(name)
            name = self._tenants[name].parent or ""
        return found


def _most(tenant: Tenant, gpu_type: str) -> float:
    """The most GPUs of a type that a tenant may hold."""
    limit = float(tenant.limit.get(gpu_type, float("inf")))
    if gpu_type in tenant.borrowing:
        return min(limit, tenant.guarantee.get(gpu_type, 0) + tenant.borrowing[gpu_type])
    return limit


def _nodes(allocation: Allocation | None) -> set[str]:
    return set() if allocation is None else {share.node for share in allocation.workers}
