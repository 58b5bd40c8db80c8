"""What every plan must keep (DESIGN: promises), worked out anew from the snapshot."""

from collections import Counter

import numpy as np

from synergy_core.model import Allocation, Job, Node, Plan, Profile, Snapshot

DIMENSIONS = ("cpu_millis", "memory_bytes")


def left(node: Node, dimension: str) -> int:
    return int(max(0, getattr(node, dimension) - getattr(node, f"{dimension}_used")))


def share_per_gpu(node: Node, dimension: str) -> int:
    """GPU-proportional share: C / G, less where pods of others have left less for the GPUs that are left."""
    gpus = max(0, node.gpus - node.gpus_used)
    return min(getattr(node, dimension) // node.gpus, left(node, dimension) // gpus) if gpus else 0


def usable(node: Node) -> bool:
    return node.gpus > node.gpus_used and all(share_per_gpu(node, dimension) > 0 for dimension in DIMENSIONS)


def speed(profile: Profile, cpu_millis: int, memory_bytes: int) -> float:
    """Interpolated speed, by another road than the planner's: first along memory, then along CPU, from the origin."""
    rows = np.maximum.accumulate(np.maximum.accumulate(np.array(profile.steps_per_s), axis=0), axis=1)
    memory = np.array([0, *profile.memory_bytes], dtype=float)
    at_memory = [0.0, *(float(np.interp(memory_bytes, memory, [0.0, *row])) for row in rows)]
    return float(np.interp(cpu_millis, np.array([0, *profile.cpu_millis], dtype=float), at_memory))


def proportional_speed(snapshot: Snapshot, job: Job, allocation: Allocation) -> float:
    nodes = {node.name: node for node in snapshot.nodes}
    share = [min(share_per_gpu(nodes[w.node], dimension) for w in allocation.workers) for dimension in DIMENSIONS]
    return speed(job.profiles[allocation.gpu_type], share[0] * job.gpus, share[1] * job.gpus)


def held(snapshot: Snapshot) -> dict[str, Counter[str]]:
    """What running jobs hold of each node."""
    return per_node([job.running for job in snapshot.jobs if job.running is not None])


def per_node(allocations: list[Allocation] | tuple[Allocation, ...]) -> dict[str, Counter[str]]:
    sums: dict[str, Counter[str]] = {}
    for allocation in allocations:
        for worker in allocation.workers:
            amounts = Counter({name: getattr(worker, name) for name in ("gpus", *DIMENSIONS)})
            sums.setdefault(worker.node, Counter()).update(amounts)
    return sums


def nothing_over_allocated(snapshot: Snapshot, plan: Plan, *, fill: bool) -> None:
    """No node gives more than others leave; in fill mode not more than before where running jobs held too much."""
    before, given = held(snapshot), per_node(plan.allocations)
    for node in snapshot.nodes:
        for name in ("gpus", *DIMENSIONS):
            limit = left(node, name)
            if fill:
                limit = max(limit, before.get(node.name, Counter())[name])
            assert given.get(node.name, Counter())[name] <= limit, (node.name, name)


def every_job_once(snapshot: Snapshot, plan: Plan) -> None:
    names = [a.job for a in plan.allocations] + [w.job for w in plan.waiting]
    assert sorted(names) == sorted(job.name for job in snapshot.jobs)


def gangs_whole_and_even(snapshot: Snapshot, plan: Plan) -> None:
    """A job has all its GPUs, on nodes of one type, with the same CPU and memory beside each."""
    jobs, nodes = {job.name: job for job in snapshot.jobs}, {node.name: node for node in snapshot.nodes}
    for a in plan.allocations:
        assert sum(w.gpus for w in a.workers) == jobs[a.job].gpus
        assert len({w.node for w in a.workers}) == len(a.workers)
        if a == jobs[a.job].running:
            continue
        assert {nodes[w.node].gpu_type for w in a.workers} == {a.gpu_type}
        for dimension in DIMENSIONS:
            rates = {(getattr(w, dimension) / w.gpus) for w in a.workers}
            assert len(rates) == 1, (a, dimension)
            assert min(rates) >= 1


def never_slower_than_proportional(snapshot: Snapshot, plan: Plan) -> None:
    """Jobs whose own upper bounds or fixed demand do not forbid it have the speed of their share at least."""
    jobs = {job.name: job for job in snapshot.jobs}
    for a in plan.allocations:
        job = jobs[a.job]
        if job.purpose == "profile" or job.cpu_millis_max or job.memory_bytes_max or a == job.running:
            continue
        profile = job.profiles.get(a.gpu_type)
        if profile is None:
            assert a.steps_per_s == a.proportional_steps_per_s == 0.0
            continue
        total = [sum(getattr(w, dimension) for w in a.workers) for dimension in DIMENSIONS]
        assert np.isclose(a.steps_per_s, speed(profile, *total), rtol=1e-9, atol=1e-12)
        usual = proportional_speed(snapshot, job, a)
        assert np.isclose(a.proportional_steps_per_s, usual, rtol=1e-9, atol=1e-12)
        assert a.steps_per_s >= usual * (1 - 1e-9), a


def bounds_kept(snapshot: Snapshot, plan: Plan) -> None:
    """Minima and maxima hold, up to the rounding of one unit per GPU."""
    jobs = {job.name: job for job in snapshot.jobs}
    for a in plan.allocations:
        job = jobs[a.job]
        if a == job.running or job.purpose == "profile":
            continue
        for dimension in DIMENSIONS:
            total = sum(getattr(w, dimension) for w in a.workers)
            most = getattr(job, f"{dimension}_max")
            assert most is None or total <= max(most, job.gpus)
            assert total > getattr(job, f"{dimension}_min") - job.gpus


def newcomers_only_where_allowed(snapshot: Snapshot, plan: Plan) -> None:
    jobs, nodes = {job.name: job for job in snapshot.jobs}, {node.name: node for node in snapshot.nodes}
    for a in plan.allocations:
        job = jobs[a.job]
        if job.running is not None and a.job not in plan.preempted:
            assert {(w.node, w.gpus) for w in a.workers} == {(w.node, w.gpus) for w in job.running.workers}
            continue
        assert not job.gpu_types or a.gpu_type in job.gpu_types
        assert job.nodes is None or {w.node for w in a.workers} <= set(job.nodes)
        assert job.placement != "consolidate" or len(a.workers) == 1
        assert all(nodes[w.node].schedulable for w in a.workers)


def all_promises(snapshot: Snapshot, plan: Plan, *, fill: bool) -> None:
    nothing_over_allocated(snapshot, plan, fill=fill)
    every_job_once(snapshot, plan)
    gangs_whole_and_even(snapshot, plan)
    never_slower_than_proportional(snapshot, plan)
    bounds_kept(snapshot, plan)
    newcomers_only_where_allowed(snapshot, plan)
