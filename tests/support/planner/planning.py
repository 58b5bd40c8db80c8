"""Short ways to write down clusters, jobs and plans."""

from collections.abc import Sequence
from typing import Any

from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Allocation, Job, Node, NodeShare, Profile, Snapshot
from synergy_core.plan import plan

GIB = 2**30


def node(name: str, gpus: int = 8, *, cpus: int = 24, gib: int = 500, gpu_type: str = "V100", **more: Any) -> Node:
    return Node(name=name, gpu_type=gpu_type, gpus=gpus, cpu_millis=cpus * 1000, memory_bytes=gib * GIB, **more)


def saturating(cpus: float, gib: float, *, speed: float = 10.0, alone: float = 0.0) -> Profile:
    """A job that is fastest from so many CPUs and so much memory on, the slower of the two setting the pace."""
    cpu = sorted({1000, 3000, 6000, 12000, 24000, 48000, int(cpus * 1000)})
    memory = sorted({20 * GIB, 60 * GIB, 250 * GIB, 500 * GIB, int(gib * GIB)})
    rows = [[speed * min(1.0, c / (cpus * 1000), alone + (1 - alone) * m / (gib * GIB)) for m in memory] for c in cpu]
    return Profile(cpu_millis=tuple(cpu), memory_bytes=tuple(memory), steps_per_s=tuple(map(tuple, rows)))


def job(name: str, gpus: int = 1, *, wants: tuple[float, float] | None = None, **more: Any) -> Job:
    """A job; `wants` are the CPUs and GiB that saturate it on V100."""
    profiles = {} if wants is None else {"V100": saturating(*wants)}
    return Job(name=name, gpus=gpus, **{"profiles": profiles, **more})


def holding(name: str, *shares: tuple[str, int, float, float], gpu_type: str = "V100") -> Allocation:
    """What a running job has: (node, GPUs, CPUs, GiB) each."""
    workers = tuple(
        NodeShare(node=n, gpus=g, cpu_millis=int(c * 1000), memory_bytes=int(m * GIB)) for n, g, c, m in shares
    )
    return Allocation(job=name, gpu_type=gpu_type, workers=workers)


def planned(nodes: Sequence[Node], jobs: Sequence[Job], **config: Any) -> Plan:
    settings = {"policy": "fifo", "mechanism": "tune", **config}
    return plan(Snapshot(nodes=tuple(nodes), jobs=tuple(jobs)), PlanConfig(**settings))


def shares(result: Plan, name: str) -> dict[str, tuple[int, float, float]]:
    """Per node the GPUs, CPUs and GiB that a job got."""
    for allocation in result.allocations:
        if allocation.job == name:
            return {w.node: (w.gpus, w.cpu_millis / 1000, w.memory_bytes / GIB) for w in allocation.workers}
    return {}


def places(result: Plan) -> dict[str, dict[str, int]]:
    """Per job the GPUs on each node."""
    return {a.job: {w.node: w.gpus for w in a.workers} for a in result.allocations}


def reasons(result: Plan) -> dict[str, str]:
    return {entry.job: entry.reason for entry in result.waiting}
