"""A plan as if nodes were there that are not: which waiting jobs would run on them."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from synergy_core.model.answer import Plan
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Allocation, Job, Node, NodeGroup, Snapshot

Planned = Callable[[Snapshot, PlanConfig], Plan]
"""Plans a snapshot."""


@dataclass(frozen=True, slots=True)
class NewNode:
    """A node that is not there."""

    group: NodeGroup
    node: Node
    promise: str = ""
    """The promise that it is part of; empty if it is not asked for yet."""
    at: float = 0.0
    """When it is expected."""


def new_node(group: NodeGroup, index: int, promise: str = "", at: float = 0.0) -> NewNode:
    """One node of the group. Its name is no name of a Kubernetes node: nothing can be bound to it."""
    node = Node(
        name=f"{group.name}/{f'promised/{promise}' if promise else 'new'}/{index:06}",
        gpu_type=group.gpu_type,
        gpus=group.gpus,
        cpu_millis=group.cpu_millis,
        memory_bytes=group.memory_bytes,
        further=group.further,
        gpu_memory_bytes=group.gpu_memory_bytes,
        price_per_hour=group.price_per_hour,
        devices_per_gpu=group.devices_per_gpu,
        counted_as=group.counted_as,
    )
    return NewNode(group, node, promise, at)


def may_use(job: Job, group: NodeGroup) -> bool:
    """Whether the job may run on new nodes of the group, as far as its GPU types and nodes say."""
    return (not job.gpu_types or group.gpu_type in job.gpu_types) and (job.nodes is None or group.name in job.nodes)


def used_of(nodes: Iterable[NewNode], found: Mapping[str, Iterable[NewNode]]) -> list[NewNode]:
    """Those of the nodes that jobs would run on."""
    names = {one.node.name for used in found.values() for one in used}
    return [one for one in nodes if one.node.name in names]


class Trial:
    """Jobs that run in a plan stay where they are, and waiting ones fill new nodes in the order of the queue.

    Tenants' limits, quotas, mechanisms and placements hold as in every plan, since it is one: in fill mode, by order of
    arrival, with each job's position in the queue as its arrival.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        config: PlanConfig,
        given: Iterable[Allocation],
        queue: Sequence[Job],
        planned: Planned,
    ) -> None:
        self._planned = planned
        self._snapshot = snapshot
        self._config = replace(
            config,
            policy="best-effort",
            mechanism="tune" if config.mechanism == "opt" else config.mechanism,
            mode="fill",
            colocation="none",
            placement_sensitive=False,
            aware=True,
            explain=False,
        )
        self._queue = queue
        self._running = {one.job: one for one in given}
        self._new: list[NewNode] = []

    def waiting(self) -> list[Job]:
        """The jobs that still have no place."""
        return [job for job in self._queue if job.name not in self._running]

    def fill(self, nodes: Sequence[NewNode], only: Container[str] | None = None) -> Mapping[str, list[NewNode]]:
        """Add the nodes; the jobs that would run on these and on those added before, with the nodes of each. Nodes that
        no job uses are taken away again, and jobs that need none are no longer waiting. `only`: the waiting jobs that
        take part."""
        there = {one.node.name: one for one in (*self._new, *nodes)}
        plan = self._planned(self._with([*self._new, *nodes], only), self._config)
        found: dict[str, list[NewNode]] = {}
        for one in plan.allocations:
            if one.job in self._running:
                continue
            self._running[one.job] = one
            used = [there[share.node] for share in one.workers if share.node in there]
            if used:
                found[one.job] = used
        self._new += used_of(nodes, found)
        return found

    def _with(self, new: Sequence[NewNode], only: Container[str] | None) -> Snapshot:
        by_group: dict[str, list[str]] = {}
        for one in new:
            by_group.setdefault(one.group.name, []).append(one.node.name)
        position = {job.name: float(index) for index, job in enumerate(self._queue) if only is None or job.name in only}
        jobs = [
            replace(
                job,
                arrival_s=position.get(job.name, 0.0),
                running=self._running.get(job.name),
                nodes=_with_new(job.nodes, by_group),
                priority=0,
                urgent=False,
            )
            for job in self._snapshot.jobs
            if job.name in position or job.name in self._running
        ]
        nodes = (*self._snapshot.nodes, *(one.node for one in new))
        return replace(self._snapshot, nodes=nodes, jobs=tuple(jobs), node_groups=())


def _with_new(nodes: tuple[str, ...] | None, by_group: Mapping[str, Sequence[str]]) -> tuple[str, ...] | None:
    """The names of nodes that a job may use, with the new nodes of the groups that are among them."""
    if nodes is None:
        return None
    return (*nodes, *(name for group in nodes for name in by_group.get(group, ())))
