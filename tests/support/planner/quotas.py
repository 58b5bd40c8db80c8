"""Quotas over random clusters (hypothesis), and what a plan takes of them, worked out anew from its allocations."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from hypothesis import strategies as st

from synergy_core.model.answer import Plan
from synergy_core.model.snapshot import Allocation, Job, Node, Quota, QuotaDraw, QuotaLimit, Snapshot

GIB = 2**30
PODS, SERVICES = "pods", "services"
LIMITS = {
    "requests.nvidia.com/gpu": "gpus",
    "requests.cpu": "cpu_millis",
    "limits.cpu": "cpu_millis",
    "requests.memory": "memory_bytes",
    PODS: "objects",
    SERVICES: "objects",
}
"""By resource, what it counts."""
_MOST = {"gpus": 16, "cpu_millis": 60_000, "memory_bytes": 600 * GIB, "objects": 8}
Taken = Mapping[tuple[str, str], int]
"""By quota and resource."""


def draw_on(quota: str, *, services: int = 0, pods: int = 1, beside_cpu: int = 0) -> QuotaDraw:
    """What a job draws whose pods have containers with `beside_cpu` more of limits than of requests."""
    return QuotaDraw(quota=quota, once={SERVICES: services}, per_pod={PODS: pods, "limits.cpu": beside_cpu})


def gpu_quota(name: str, hard: int, used: int = 0) -> Quota:
    """A quota of GPUs."""
    limit = QuotaLimit(resource="requests.nvidia.com/gpu", counts="gpus", hard=hard, used=used)
    return Quota(name=name, limits=(limit,))


@st.composite
def with_quotas(draw: st.DrawFn, snapshots: st.SearchStrategy[Snapshot]) -> Snapshot:
    """Two namespaces with a quota or two each; some jobs are of neither."""
    snapshot = draw(snapshots)
    quotas = tuple(draw(quota(name)) for name in ("red/a", "red/b", "blue/a"))
    jobs = []
    for job in snapshot.jobs:
        names = draw(st.sampled_from(((), ("red/a",), ("red/a", "red/b"), ("blue/a",))))
        draws = tuple(
            draw_on(name, services=draw(st.integers(0, 1)), beside_cpu=draw(st.sampled_from((0, 500))))
            for name in names
        )
        jobs.append(replace(job, quotas=draws, gpus_per_worker=draw(st.sampled_from((None, None, 1, 2)))))
    return replace(snapshot, jobs=tuple(jobs), quotas=quotas)


@st.composite
def quota(draw: st.DrawFn, name: str) -> Quota:
    limits = []
    for resource in sorted(draw(st.sets(st.sampled_from(sorted(LIMITS)), min_size=1, max_size=3))):
        counts = LIMITS[resource]
        hard = draw(st.integers(0, _MOST[counts]))
        used = draw(st.sampled_from((0, 0, hard // 2, hard + 1)))
        limits.append(QuotaLimit(resource=resource, counts=counts, hard=hard, used=used))
    return Quota(name=name, limits=tuple(limits))


def taken(snapshot: Snapshot, allocations: Iterable[Allocation]) -> Taken:
    """What these allocations take of each quota."""
    jobs = {job.name: job for job in snapshot.jobs}
    nodes = {node.name: node for node in snapshot.nodes}
    limits = {quota.name: quota.limits for quota in snapshot.quotas}
    total: dict[tuple[str, str], int] = defaultdict(int)
    for allocation in allocations:
        job = jobs[allocation.job]
        for one in job.quotas:
            for limit in limits[one.quota]:
                total[one.quota, limit.resource] += _amount(job, one, limit, allocation, nodes)
    return total


def _amount(job: Job, one: QuotaDraw, limit: QuotaLimit, allocation: Allocation, nodes: Mapping[str, Node]) -> int:
    pods = 0
    amount = one.once.get(limit.resource, 0)
    for share in allocation.workers:
        size = job.gpus_per_worker or share.gpus
        pods += (share.gpus + size - 1) // size
        node = nodes.get(share.node)
        if limit.counts in ("cpu_millis", "memory_bytes"):
            amount += getattr(share, limit.counts)
        elif node is not None and limit.counts == node.counted_as:
            amount += _devices(share.gpus, allocation, node)
    return amount + pods * one.per_pod.get(limit.resource, 0)


def keeps_quotas(snapshot: Snapshot, result: Plan) -> None:
    """No quota is exceeded, but by those who stay where they run, and then nobody gets more than they held."""
    now = taken(snapshot, result.allocations)
    stays = [job.running for job in snapshot.jobs if job.running is not None and _stays(job, result)]
    before = taken(snapshot, [allocation for allocation in stays if allocation is not None])
    for quota in snapshot.quotas:
        for limit in quota.limits:
            name = quota.name, limit.resource
            room = max(limit.hard - limit.used, before.get(name, 0))
            assert now.get(name, 0) <= room, (name, now.get(name, 0), room)


def _stays(job: Job, result: Plan) -> bool:
    return job.name in {a.job for a in result.allocations} and job.name not in result.preempted


def _devices(gpus: int, allocation: Allocation, node: Node) -> int:
    """The jobs of one GPU ask for all its devices between them: the first by name for what the others leave."""
    if not allocation.partners:
        return gpus * node.devices_per_gpu
    return 1 if allocation.job > min(allocation.partners) else node.devices_per_gpu - len(allocation.partners)
