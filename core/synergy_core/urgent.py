"""Jobs of urgent classes do not wait for the round's end: jobs of lower classes give way to them at once.

A plan is made first without. For each urgent job that still waits, in order of class, arrival and name, jobs that may
give way are taken out of the snapshot, no more of them than needed, and the plan is made again with the urgent job at
the head of the queue. It counts if the urgent job has its GPUs and nobody else has lost any.

A job may give way if all of these hold:

* It trains, may be preempted, and its class is below the urgent one.
* It is of the same tenant. Where classes count across tenants, it may be of another that keeps its guarantee.
* Its run has lasted `minimum_run_s`, and no preemption budget is exceeded. The payback time protects no run here.

The lowest class gives way first, and in it the youngest run.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from synergy_core.explain.waiting import waiting
from synergy_core.model.answer import GaveWay, Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.reasons import Reason
from synergy_core.model.snapshot import Allocation, Job, Snapshot, Tenant
from synergy_core.selection.preemption.budgets import TenantBudgets, out_of_own_budget

Planned = Callable[[Snapshot, tuple[str, ...]], Plan]
"""Plans a snapshot with these jobs at the head of the queue."""

_MOST_PLANS = 32
"""Further plans that one plan makes for urgent jobs at the most; the others wait for the next plan."""
_MOST_NODES = 4
"""Nodes that are tried for a job that may need one node."""

_Unit = tuple[Job, ...]
"""Jobs that share GPUs: they give way together."""


def with_urgent(snapshot: Snapshot, config: PlanConfig, names: Sequence[str], plan: Plan, planned: Planned) -> Plan:
    """The plan, with room made for urgent jobs. `names` is its queue, the highest first."""
    there, ranked = {one.job for one in plan.allocations}, set(names)  # a job that its quotas shut out is not ranked
    urgent = [job for job in snapshot.jobs if job.urgent and job.purpose == "train"]
    wait = [job for job in urgent if job.name in ranked and job.name not in there]
    if not wait:
        return plan
    without, gone, plans = plan, list[GaveWay](), iter(range(_MOST_PLANS))
    jobs, budgets = {job.name: job for job in snapshot.jobs}, TenantBudgets(snapshot)

    def limited(reduced: Snapshot, head: tuple[str, ...]) -> Plan | None:
        return None if next(plans, None) is None else planned(reduced, head)

    served: tuple[str, ...] = ()
    for job in sorted(wait, key=lambda one: (-one.priority, one.arrival_s, one.name)):
        preempted = tuple(jobs[name] for name in sorted({*plan.preempted, *(one.job for one in gone)}))
        search = _Search(job, _without(snapshot, gone), config, plan, (*served, job.name), budgets, preempted)
        made = _room_for(search, limited)
        if made is not None:
            plan, victims = made
            gone += [GaveWay(victim, job.name) for victim in victims]
            served = search.head
    return _with_those_who_left(plan, gone, without, jobs) if gone else plan


def _with_those_who_left(plan: Plan, gone: Sequence[GaveWay], without: Plan, jobs: Mapping[str, Job]) -> Plan:
    """The last of the plans, with the jobs that were taken out of its snapshot as preempted ones. Promotions, deadlines
    and isolated progress do not depend on which jobs run: they are those of the first plan."""
    in_order = tuple(sorted(gone, key=lambda one: one.job))
    names = {one.job for one in gone}
    yielded = [waiting(jobs[one.job], Reason.YIELDED) for one in in_order] if without.waiting else []
    return replace(
        plan,
        waiting=(*plan.waiting, *yielded),
        preempted=tuple(sorted({*plan.preempted, *names})),
        promoted=without.promoted,
        late=without.late,
        isolated=without.isolated,
        gave_way=in_order,
    )


def _without(snapshot: Snapshot, gone: Iterable[GaveWay]) -> Snapshot:
    names = {one.job for one in gone}
    return replace(snapshot, jobs=tuple(job for job in snapshot.jobs if job.name not in names)) if names else snapshot


@dataclass(frozen=True)
class _Search:
    """For which job room is searched, and where it stands."""

    job: Job
    snapshot: Snapshot
    config: PlanConfig
    plan: Plan
    head: tuple[str, ...]
    """Urgent jobs at the head of the queue: those that have room already, and this one."""
    budgets: TenantBudgets
    preempted: tuple[Job, ...]
    """Jobs that are preempted already."""


def _room_for(
    search: _Search, planned: Callable[[Snapshot, tuple[str, ...]], Plan | None]
) -> tuple[Plan, tuple[str, ...]] | None:
    """A plan in which the job runs, and the jobs that gave way; None where there is none."""
    job, snapshot, plan = search.job, search.snapshot, search.plan

    def tried(units: Sequence[_Unit]) -> Plan | None:
        gone = {member.name for unit in units for member in unit}
        left = replace(snapshot, jobs=tuple(one for one in snapshot.jobs if one.name not in gone))
        found = planned(left, search.head)
        return found if found is not None and _is_served(search, found, gone) else None

    may = _may_give_way(search)
    for gpu_type in sorted({_on(unit) for unit in may}):
        units = _keeping_guarantees([unit for unit in may if _on(unit) == gpu_type], job, snapshot, plan)
        units = [tuple(unit) for unit in search.budgets.within(units, search.preempted)]
        found = _fewest(job, units, _idle(snapshot, plan, gpu_type), tried)
        if found is not None:
            return found
    return None


def _fewest(
    job: Job, units: Sequence[_Unit], idle: int, tried: Callable[[Sequence[_Unit]], Plan | None]
) -> tuple[Plan, tuple[str, ...]] | None:
    """The first choice of units that makes room, without those that it can spare."""

    def suffices(chosen: Sequence[_Unit]) -> bool:
        return idle + sum(map(_gpus, chosen)) >= job.gpus

    for chosen in _choices(job, units, suffices):
        found = tried(chosen)
        if found is None:
            continue
        left, size = list(chosen), max(1, len(chosen) // 2)
        while size:  # in halves, quarters and so on, at last one by one
            for unit in list(left)[::size]:
                at = left.index(unit) if unit in left else len(left)
                fewer = [*left[:at], *left[at + size :]]
                better = tried(fewer) if at < len(left) and fewer and suffices(fewer) else None
                left, found = (left, found) if better is None else (fewer, better)
            size //= 2
        return found, tuple(member.name for unit in left for member in unit)
    return None


def _choices(
    job: Job, units: Sequence[_Unit], suffices: Callable[[Sequence[_Unit]], bool]
) -> Iterator[Sequence[_Unit]]:
    """Units that have enough GPUs together: the first to give way, those of one node, and more and more of all.

    A job that needs one node is tried on each first.
    """
    number = next((n for n in range(1, len(units) + 1) if suffices(units[:n])), None)
    if number is None:
        return
    by_node: dict[str, list[_Unit]] = {}
    for unit in units:
        nodes = _nodes(unit)
        if len(nodes) == 1:
            by_node.setdefault(nodes[0], []).append(unit)
    of_nodes = [_enough(theirs, job.gpus) for theirs in by_node.values()]
    of_nodes = [theirs for theirs in of_nodes if suffices(theirs)]
    of_nodes.sort(key=lambda found: (max(map(_first_to_give_way, found)), len(found)))
    packed = job.placement in ("consolidate", "pack")
    yield from of_nodes[:_MOST_NODES] if packed else [units[:number]]
    yield from [units[:number]] if packed else of_nodes[:_MOST_NODES]
    while number < len(units):
        number = min(2 * number, len(units))
        yield units[:number]


def _enough(units: Sequence[_Unit], gpus: int) -> Sequence[_Unit]:
    """The first units that have so many GPUs; all where they have fewer: the node may have free ones."""
    return next((units[:n] for n in range(1, len(units)) if sum(map(_gpus, units[:n])) >= gpus), units)


def _is_served(search: _Search, found: Plan, gone: set[str]) -> bool:
    """The job runs, and so do all others that the plan before let run: running ones where they were. Of newcomers only
    urgent ones and those of tenants that have no part in this must keep their places."""
    after = {one.job: _place(one) for one in found.allocations}
    by_name = {one.name: one for one in search.snapshot.jobs}

    def keeps(one: Allocation) -> bool:
        other = by_name[one.job]
        if other.running is not None:
            return after.get(one.job) == _place(one)
        apart = other.tenant != search.job.tenant and not search.config.priorities_across
        return one.job in after or not (other.urgent or apart)

    return search.job.name in after and all(keeps(one) for one in search.plan.allocations if one.job not in gone)


def _may_give_way(search: _Search) -> list[_Unit]:
    """Units that may give way, those that do first in front."""
    snapshot, job, config = search.snapshot, search.job, search.config
    by_name = {one.name: one for one in snapshot.jobs}
    there = {one.job: one for one in search.plan.allocations}
    protected = out_of_own_budget(snapshot, config)

    def may(other: Job) -> bool:
        running, place = other.running, there.get(other.name)
        if running is None or place is None or _place(place) != _place(running) or other.name in protected:
            return False
        young = other.run_started_s is not None and snapshot.now - other.run_started_s < config.minimum_run_s
        ours = other.tenant == job.tenant or config.priorities_across
        trains = other.purpose == "train" and other.preemptible and not young
        return trains and ours and other.priority < job.priority

    units: list[_Unit] = []
    seen: set[str] = set()
    for other in snapshot.jobs:
        running = other.running
        if running is None or other.name in seen or (job.gpu_types and running.gpu_type not in job.gpu_types):
            continue
        unit = tuple(by_name[name] for name in sorted({other.name, *running.partners}) if name in by_name)
        seen |= {member.name for member in unit}
        if all(map(may, unit)):
            units.append(unit)
    return sorted(units, key=_first_to_give_way)


def _first_to_give_way(unit: _Unit) -> tuple[int, float, str]:
    started = max((job.run_started_s for job in unit if job.run_started_s is not None), default=0.0)
    return max(job.priority for job in unit), -started, unit[0].name


def _keeping_guarantees(units: Sequence[_Unit], job: Job, snapshot: Snapshot, plan: Plan) -> list[_Unit]:
    """The units without those that a guarantee of another tenant holds."""
    tenants = {tenant.name: tenant for tenant in snapshot.tenants}
    tenant_of = {one.name: one.tenant for one in snapshot.jobs}
    own = set(_above(job.tenant, tenants))
    held: dict[tuple[str, str], int] = {}
    for one in plan.allocations:
        for name in _above(tenant_of[one.job], tenants):
            key = name, one.gpu_type
            held[key] = held.get(key, 0) + sum(share.gpus for share in one.workers)
    found = []
    for unit in units:
        gpu_type, gpus = _on(unit), _gpus(unit)
        others = {name for member in unit for name in _above(member.tenant, tenants)} - own
        if all(held[name, gpu_type] - gpus >= tenants[name].guarantee.get(gpu_type, 0) for name in others):
            found.append(unit)
            for name in others:
                held[name, gpu_type] -= gpus
    return found


def _above(name: str, tenants: dict[str, Tenant]) -> list[str]:
    found = []
    while name in tenants:
        found.append(name)
        name = tenants[name].parent or ""
    return found


def _idle(snapshot: Snapshot, plan: Plan, gpu_type: str) -> int:
    """GPUs of the type that no job of the plan has."""
    free = sum(max(0, node.gpus - node.gpus_used) for node in snapshot.nodes if node.gpu_type == gpu_type)
    given = {frozenset((one.job, *one.partners)): one for one in plan.allocations if one.gpu_type == gpu_type}
    return free - sum(share.gpus for one in given.values() for share in one.workers)


def _on(unit: _Unit) -> str:
    running = unit[0].running
    return "" if running is None else running.gpu_type


def _nodes(unit: _Unit) -> list[str]:
    running = unit[0].running
    return [] if running is None else [share.node for share in running.workers]


def _gpus(unit: _Unit) -> int:
    return max(job.gpus for job in unit)


def _place(allocation: Allocation) -> frozenset[tuple[str, int]]:
    return frozenset((share.node, share.gpus) for share in allocation.workers)
