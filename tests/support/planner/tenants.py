"""Random trees of tenants, and what a plan must keep of them, worked out anew from the snapshot."""

from collections.abc import Iterable
from dataclasses import replace
from math import inf

from hypothesis import strategies as st

from support.planner.promises import usable
from support.planner.sound_trees import sound
from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Allocation, Job, Snapshot, Tenant

TYPES = ("A100", "V100")
NAMES = ("a", "b", "c", "d", "e")

_amounts = st.dictionaries(st.sampled_from(TYPES), st.integers(0, 8), max_size=2)
_some: st.SearchStrategy[dict[str, int]] = st.one_of(st.just({}), _amounts)


@st.composite
def trees(draw: st.DrawFn, *, limits: bool = True) -> tuple[Tenant, ...]:
    """A sound tree of up to five tenants; parents have names before their children's."""
    found = [
        Tenant(
            NAMES[index],
            draw(st.sampled_from((1.0, 1.0, 2.0))),
            parent=draw(st.sampled_from((None, *NAMES[:index]))),
            guarantee=draw(_amounts),
            limit=draw(_some) if limits else {},
            borrowing=draw(_some) if limits else {},
            lending=draw(_some) if limits else {},
        )
        for index in range(draw(st.integers(1, len(NAMES))))
    ]
    return sound(found)


@st.composite
def with_tenants(draw: st.DrawFn, snapshots: st.SearchStrategy[Snapshot], *, limits: bool = True) -> Snapshot:
    """Jobs of tenants in a tree, of one that is not in it, and of none."""
    snapshot = draw(snapshots)
    jobs = tuple(replace(job, tenant=draw(st.sampled_from((*NAMES, "x", "")))) for job in snapshot.jobs)
    return replace(snapshot, jobs=jobs, tenants=draw(trees(limits=limits)))


class Tenants:
    """The tenants of a snapshot by name, and who is in whose subtree."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.listed = {tenant.name: tenant for tenant in snapshot.tenants}
        self.jobs = {job.name: job for job in snapshot.jobs}

    def above(self, name: str) -> list[str]:
        """The tenant and all above it, the root last."""
        found = [name]
        while name in self.listed and self.listed[name].parent is not None:
            name = self.listed[name].parent or ""
            found.append(name)
        return found

    def guarantee(self, name: str, gpu_type: str) -> int:
        return self.listed[name].guarantee.get(gpu_type, 0) if name in self.listed else 0

    def weight(self, name: str) -> float:
        return self.listed[name].weight if name in self.listed else 1.0

    def cap(self, name: str, gpu_type: str) -> float:
        if name not in self.listed:
            return inf
        tenant = self.listed[name]
        borrowing = tenant.borrowing.get(gpu_type)
        most = inf if borrowing is None else tenant.guarantee.get(gpu_type, 0) + borrowing
        return min(most, tenant.limit.get(gpu_type, inf))

    def held(self, allocations: Iterable[Allocation], name: str, gpu_type: str) -> int:
        """GPUs of a subtree; one that several of its jobs share counts once."""
        gpus: dict[frozenset[str], int] = {}
        for one in allocations:
            members = frozenset({one.job, *one.partners})
            mine = [job for job in members if job in self.jobs and name in self.above(self.jobs[job].tenant)]
            if one.gpu_type == gpu_type and mine:
                gpus[members] = sum(worker.gpus for worker in one.workers)
        return sum(gpus.values())

    def reserved(self, allocations: tuple[Allocation, ...], gpu_type: str) -> int:
        """GPUs that tenants lend to nobody and do not hold."""

        def needs(name: str) -> int:
            tenant = self.listed[name]
            guarantee = tenant.guarantee.get(gpu_type, 0)
            reserve = guarantee - min(guarantee, tenant.lending.get(gpu_type, guarantee))
            below = sum(needs(other.name) for other in self.listed.values() if other.parent == name)
            return max(reserve - self.held(allocations, name, gpu_type), below)

        return sum(needs(tenant.name) for tenant in self.listed.values() if tenant.parent is None)


def stays_by_right(job: Job, snapshot: Snapshot, config: PlanConfig) -> bool:
    """A running job that no tenant's limit or guarantee takes away."""
    if job.running is None:
        return False
    if config.mode == "fill" or not job.preemptible or job.purpose == "profile":
        return True
    if job.run_started_s is None:
        return False
    least = max(config.minimum_run_s, config.preemption_payback * job.preemption_cost_s)
    return snapshot.now - job.run_started_s < least


def keeps_limits(snapshot: Snapshot, config: PlanConfig, result: Plan) -> None:
    """No tenant holds more than its cap, but for what its jobs that stay by right hold."""
    tenants = Tenants(snapshot)
    by_right = {job.name for job in snapshot.jobs if stays_by_right(job, snapshot, config)}
    staying = [one for one in result.allocations if one.job in by_right]
    for name in tenants.listed:
        for gpu_type in {one.gpu_type for one in result.allocations}:
            most = max(tenants.cap(name, gpu_type), tenants.held(staying, name, gpu_type))
            assert tenants.held(result.allocations, name, gpu_type) <= most, (name, gpu_type)


def keeps_reserves(snapshot: Snapshot, config: PlanConfig, result: Plan) -> None:
    """What tenants do not lend is free, unless guarantees or jobs that stay by right have it."""
    tenants = Tenants(snapshot)
    by_right = {job.name for job in snapshot.jobs if stays_by_right(job, snapshot, config)}
    for gpu_type in {node.gpu_type for node in snapshot.nodes}:
        lacking = tenants.reserved(result.allocations, gpu_type) - idle(snapshot, result, gpu_type)
        if lacking <= 0:
            continue
        for one in result.allocations:
            borrows = all(
                tenants.held(result.allocations, name, gpu_type) > tenants.guarantee(name, gpu_type)
                for name in tenants.above(tenants.jobs[one.job].tenant)
            )
            if one.gpu_type == gpu_type and borrows:
                assert one.job in by_right or len(by_right & {other.job for other in result.allocations}) > 0, one


def idle(snapshot: Snapshot, result: Plan, gpu_type: str) -> int:
    """Free GPUs of open nodes."""
    given: dict[str, dict[frozenset[str], int]] = {}
    for one in result.allocations:
        for worker in one.workers:
            given.setdefault(worker.node, {})[frozenset({one.job, *one.partners})] = worker.gpus
    return sum(
        max(0, node.gpus - node.gpus_used - sum(given.get(node.name, {}).values()))
        for node in snapshot.nodes
        if node.gpu_type == gpu_type and node.schedulable and usable(node)
    )
