"""Which jobs keep their shared GPU when a plan pairs jobs anew, and whether partners can still be placed there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Literal

from synergy_api.parts.allocation import Allocation
from synergy_api.parts.sharing import SharedGPU
from synergy_core.model import snapshot as core
from synergy_extender.cluster.run_state import open_run
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, Key
from synergy_extender.colocation.devices import Capacities, devices_of
from synergy_extender.colocation.order import Group, group_of, key_of

MOST_CORRECTIONS = 2
"""Runs in a row that are ended for having got other partners than planned. Whatever is the reason, another run would
find it too: after these the job stays with the partner that it got."""


class Coming(Enum):
    """Where a job's planned partners are."""

    HERE = auto()
    """All have their places beside it."""
    LATER = auto()
    """Some still have to leave where they are."""
    NEVER = auto()
    """Some have no place beside it any more."""


def coming(group: Group, job: Key, granted: Mapping[str, Allocation], reserved: Iterable[Key]) -> Coming:
    """Where the job's partners are; `granted` are the places that jobs hold, `reserved` jobs for whom one is kept."""
    kept = {str(key) for key in reserved}
    here = True
    for name in group - {str(job)}:
        allocation = granted.get(name)
        if allocation is not None and group_of(key_of(name), allocation) == group:
            continue
        if name not in kept:
            return Coming.NEVER
        here = False
    return Coming.HERE if here else Coming.LATER


class SeenGpus:
    """Which job reported which GPU in its open run. What does not report its GPUs is not seen."""

    def __init__(self, jobs: Iterable[JobView]) -> None:
        self._gpus: dict[str, frozenset[tuple[str, str]]] = {}
        self._jobs: dict[tuple[str, str], set[str]] = {}
        for job in jobs:
            gpus = _gpus(job)
            if gpus:
                self._gpus[str(job.key)] = gpus
                for gpu in gpus:
                    self._jobs.setdefault(gpu, set()).add(str(job.key))

    def partners(self, job: Key, shared: SharedGPU) -> list[str] | None:
        """The other jobs on the job's GPUs; None until it and all its planned partners have reported."""
        own = self._gpus.get(str(job), frozenset())
        if not own or any(name not in self._gpus for name in shared.asked):
            return None
        return sorted({name for gpu in own for name in self._jobs[gpu]} - {str(job)})


def shared_gpu(place: core.Allocation, before: Allocation | None, *, on_shared_node: bool) -> SharedGPU | None:
    """What a new place says of sharing; None on nodes without shared GPUs."""
    if not on_shared_node:
        return None
    wrong = 0
    if before is not None and before.shared_gpu is not None and is_wrong(before.shared_gpu):
        wrong = before.shared_gpu.wrong_runs + 1
    return SharedGPU(asked=list(place.partners), wrong_runs=wrong, delta=delta_form(place))


def delta_form(place: core.Allocation) -> Literal["Fractions"] | None:
    """What status says of the form of delta that decided."""
    return "Fractions" if place.delta_by_fractions else None


def is_wrong(shared: SharedGPU) -> bool:
    """Whether the job was seen with others than the plan gave it."""
    return shared.seen is not None and sorted(shared.seen) != sorted(shared.asked)


@dataclass
class _OnNode:
    """The jobs that run on one node with shared GPUs and that the plan leaves there."""

    replicas: int
    by_order: bool
    units: dict[str, frozenset[str]] = field(default_factory=dict)
    """By job, the jobs on its GPU now."""
    groups: dict[str, Group] = field(default_factory=dict)
    """By job, the jobs that shall be on it."""
    devices: dict[str, int] = field(default_factory=dict)


def movers(places: Mapping[str, core.Allocation], state: ClusterState) -> frozenset[Key]:
    """Running jobs that must start anew on the node where they are, to come to the GPU that the plan gives them.

    Of jobs that share a GPU and shall no longer, the first keeps it. Of jobs that shall share one, the first stays.
    Where partners come by order, only one GPU of a node may wait for a job.
    """
    capacities = {capacity.name: capacity for capacity in state.capacities if capacity.replicas > 1}
    if not capacities:
        return frozenset()
    found: set[str] = set()
    for node in _on_nodes(places, state, capacities).values():
        found |= _movers_on(node)
    return frozenset(key for key in state.jobs if str(key) in found)


def _on_nodes(places: Mapping[str, core.Allocation], state: ClusterState, capacities: Capacities) -> dict[str, _OnNode]:
    nodes: dict[str, _OnNode] = {}
    running = {str(job.key): found for job in state.jobs.values() if (found := _admitted(job)) is not None}
    for name, allocation in running.items():
        place = places.get(name)
        if place is None or len(allocation.workers) != 1 or allocation.workers[0].node not in capacities:
            continue
        share = allocation.workers[0]
        if devices_of(place, capacities) != {share.node: (share.gpus, share.devices)} or share.devices is None:
            continue
        capacity = capacities[share.node]
        node = nodes.setdefault(share.node, _OnNode(capacity.replicas, capacity.by_order))
        mates = _mates(allocation.shared_gpu)
        node.units[name] = frozenset({name, *(mate for mate in mates if mate in running)})
        node.groups[name] = frozenset({name, *place.partners})
        node.devices[name] = share.devices
    return nodes


def _movers_on(node: _OnNode) -> set[str]:
    stay = sorted(node.groups)
    first: dict[str, str] = {}
    for name in stay:
        for mate in node.units[name]:
            first.setdefault(mate, name)
    stay = [name for name in stay if node.groups[name] == node.groups.get(first[name], node.groups[name])]
    home: dict[Group, frozenset[str]] = {}
    for name in stay:
        home.setdefault(node.groups[name], node.units[name])
    stay = [name for name in stay if name in home[node.groups[name]]]
    if node.by_order:
        held: dict[Group, int] = {}
        for name in stay:
            held[node.groups[name]] = held.get(node.groups[name], 0) + node.devices[name]
        lacking = [group for group, devices in held.items() if devices % node.replicas]
        stay = [name for name in stay if node.groups[name] not in lacking[1:]]
    return set(node.groups) - set(stay)


def _mates(shared: SharedGPU | None) -> list[str]:
    if shared is None:
        return []
    if shared.seen is None or shared.wrong_runs >= MOST_CORRECTIONS:
        return shared.asked
    return shared.seen


def _admitted(job: JobView) -> Allocation | None:
    allocation = open_run(job)
    held = allocation is not None and allocation.state == "Granted" and allocation.admitted
    return allocation if held and not job.deleting else None


def _gpus(job: JobView) -> frozenset[tuple[str, str]]:
    """Node and UUID of the GPUs that the open run reported, on nodes with shared ones."""
    allocation, progress = open_run(job), job.status.progress
    if allocation is None or allocation.shared_gpu is None or progress is None or progress.run != allocation.run:
        return frozenset()
    return frozenset((share.node, uuid) for share in allocation.workers for uuid in progress.gpu_uuids)
