"""What every plan must keep, worked out anew from the snapshot."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from synergy_core.model.answer import Plan
from synergy_core.model.snapshot import Allocation, Job, Node, Profile, Snapshot

BASE = ("cpu_millis", "memory_bytes")


def dimensions(snapshot: Snapshot) -> tuple[str, ...]:
    return (*BASE, *sorted({name for node in snapshot.nodes for name in node.further}))


def amount(thing: Any, dimension: str, which: str = "") -> Any:
    """What a node, a share or a job has in a dimension; `which` is "_used", "_min" or "_max"."""
    if dimension in ("gpus", *BASE):
        return getattr(thing, dimension + which)
    return getattr(thing, f"further{which}").get(dimension, None if which == "_max" else 0)


def left(node: Node, dimension: str) -> int:
    return int(max(0, amount(node, dimension) - amount(node, dimension, "_used")))


def share_per_gpu(node: Node, dimension: str) -> int:
    """GPU-proportional share: C / G, less where pods of others have left less for the GPUs that are left."""
    gpus = max(0, node.gpus - node.gpus_used)
    return min(int(amount(node, dimension)) // node.gpus, left(node, dimension) // gpus) if gpus else 0


def usable(node: Node) -> bool:
    return node.gpus > node.gpus_used and all(share_per_gpu(node, name) > 0 for name in (*BASE, *node.further))


def speed(profile: Profile, cpu_millis: int, memory_bytes: int, further: Mapping[str, int] | None = None) -> float:
    """Interpolated speed, by another road than the planner's: with arrays, the last axis first, from the origin.

    A further resource that is not given is there without end.
    """
    names = sorted(profile.further)
    axes = [profile.cpu_millis, profile.memory_bytes, *(profile.further[name] for name in names)]
    amounts = [cpu_millis, memory_bytes, *((further or {}).get(name, 2**62) for name in names)]
    table = np.array(profile.steps_per_s).reshape([len(axis) for axis in axes])
    for index in range(len(axes)):
        table = np.maximum.accumulate(table, axis=index)
    for axis, given in zip(reversed(axes), reversed(amounts), strict=True):
        points = np.array([0, *axis], dtype=float)
        rows = [np.interp(given, points, [0.0, *row]) for row in table.reshape(-1, len(axis))]
        table = np.array(rows).reshape(table.shape[:-1])
    return float(table)


def proportional_speed(snapshot: Snapshot, job: Job, allocation: Allocation) -> float:
    nodes = {node.name: node for node in snapshot.nodes}
    names = dimensions(snapshot)
    share = [min(share_per_gpu(nodes[w.node], name) for w in allocation.workers) * job.gpus for name in names]
    return speed(job.profiles[allocation.gpu_type], share[0], share[1], dict(zip(names[2:], share[2:], strict=True)))


def held(snapshot: Snapshot) -> dict[str, Counter[str]]:
    """What running jobs hold of each node."""
    return per_node([job.running for job in snapshot.jobs if job.running is not None])


def per_node(allocations: list[Allocation] | tuple[Allocation, ...]) -> dict[str, Counter[str]]:
    sums: dict[str, Counter[str]] = {}
    for allocation in allocations:
        for worker in allocation.workers:
            amounts = Counter({name: amount(worker, name) for name in ("gpus", *BASE, *worker.further)})
            sums.setdefault(worker.node, Counter()).update(amounts)
    return sums


def nothing_over_allocated(snapshot: Snapshot, plan: Plan, *, fill: bool) -> None:
    """No node gives more than others leave; where those who keep their places already hold more, not more than that.

    In fill mode all running jobs keep their places, else those that may not be preempted and profile runs.
    """
    staying = [job for job in snapshot.jobs if fill or not job.preemptible or job.purpose == "profile"]
    before, given = held(replace(snapshot, jobs=tuple(staying))), per_node(plan.allocations)
    for node in snapshot.nodes:
        for name in ("gpus", *dimensions(snapshot)):
            limit = max(left(node, name), before.get(node.name, Counter())[name])
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
        for dimension in dimensions(snapshot):
            rates = {(amount(w, dimension) / w.gpus) for w in a.workers}
            assert len(rates) == 1, (a, dimension)
            assert min(rates) >= 1


def never_slower_than_proportional(snapshot: Snapshot, plan: Plan) -> None:
    """Jobs whose own upper bounds or fixed demand do not forbid it have the speed of their share at least."""
    jobs = {job.name: job for job in snapshot.jobs}
    for a in plan.allocations:
        job = jobs[a.job]
        if (
            job.purpose == "profile"
            or job.cpu_millis_max
            or job.memory_bytes_max
            or job.further_max
            or a == job.running
            or _keeps_its_place(job, a)
        ):
            continue
        profile = job.profiles.get(a.gpu_type)
        if profile is None:
            assert a.steps_per_s == a.proportional_steps_per_s
            assert a.estimated or a.steps_per_s in (0.0, job.measured.get(a.gpu_type))
            continue
        total = {name: sum(amount(w, name) for w in a.workers) for name in dimensions(snapshot)}
        now = speed(profile, total.pop("cpu_millis"), total.pop("memory_bytes"), total)
        assert np.isclose(a.steps_per_s, now, rtol=1e-9, atol=1e-12)
        usual = proportional_speed(snapshot, job, a)
        assert np.isclose(a.proportional_steps_per_s, usual, rtol=1e-9, atol=1e-12)
        assert a.steps_per_s >= usual * (1 - 1e-9), a


def _keeps_its_place(job: Job, a: Allocation) -> bool:
    """Whether it stays with just what it holds, as who may not be moved does on a node that has changed since: its
    share there may be another one now."""
    return not job.preemptible and job.running is not None and set(a.workers) == set(job.running.workers)


def bounds_kept(snapshot: Snapshot, plan: Plan) -> None:
    """Minima and maxima hold, up to the rounding of one unit per GPU."""
    jobs = {job.name: job for job in snapshot.jobs}
    for a in plan.allocations:
        job = jobs[a.job]
        if a == job.running or job.purpose == "profile":
            continue
        for dimension in dimensions(snapshot):
            total = sum(amount(w, dimension) for w in a.workers)
            most = amount(job, dimension, "_max")
            assert most is None or total <= max(most, job.gpus)
            assert total > amount(job, dimension, "_min") - job.gpus


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
