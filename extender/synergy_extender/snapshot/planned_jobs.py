"""What each job asks of the planner."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from synergy_api.amounts import NOTHING, Amounts
from synergy_api.cluster.new_nodes import new_capacity
from synergy_api.cluster.nodes import pod_spec_admits
from synergy_api.cluster.pools import NodeCapacity, worker_tolerations
from synergy_api.names import RESOURCE_GPU
from synergy_api.parts.allocation import Allocation
from synergy_api.parts.profile import ProfileRequest
from synergy_core.model import snapshot as core
from synergy_extender.cluster.dimensions import least_of
from synergy_extender.cluster.placements import sizes_of
from synergy_extender.cluster.run_state import RunState, open_run, run_state
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, Key, PodView
from synergy_extender.colocation.order import group_of, key_of
from synergy_extender.colocation.usages import too_small_clients
from synergy_extender.snapshot.entitlements import Entitlements
from synergy_extender.snapshot.known.jobs import KnownJobs
from synergy_extender.snapshot.node_groups import group_name, growing, new_node_objects
from synergy_extender.snapshot.nodes import room_of
from synergy_extender.snapshot.requests import held, profiling, running_profile, training
from synergy_extender.snapshot.used_room import OVERDUE_SECONDS, overdue

LONGEST_LEAVE_SECONDS = 600.0
"""A pod whose grace period ends later than this counts as one that stays: its owner chooses that period, of years even,
and profile series of all others would wait for it."""
Rooms = Sequence[tuple[NodeCapacity, Amounts]]
"""Nodes that take pods now, each with what is left of it."""


class PlannedJobs:
    """What each job asks of the planner."""

    def __init__(
        self,
        state: ClusterState,
        now: float,
        reserved: Mapping[Key, core.Allocation],
        entitled: Entitlements,
        known: KnownJobs,
    ) -> None:
        self._entitled = entitled.by_job
        self._state = state
        self._now = now
        self._reserved = reserved
        self._known = known
        known.begin((state.capacities, state.nodes, state.pools, state.grows), sizes_of(state.capacities))
        self._sizes = known.sizes
        self._shared = [capacity for capacity in state.capacities if capacity.mps]

    @cached_property
    def _rooms(self) -> Rooms:
        """What each node has beside pods that stay, found once for all profile series that ask."""
        return [
            (capacity, room_of(capacity).minus(self._foreign(capacity.name)))
            for capacity in self._state.capacities
            if capacity.schedulable
        ]

    def of(self, job: JobView) -> core.Job | None:
        """The job as the planner shall see it, with the times of when it was worked out; None if it plays no part."""
        request = self._of(job)
        if request is None or request.purpose == "profile":
            self._known.without_times(job)
        return request

    def _of(self, job: JobView) -> core.Job | None:
        match run_state(job, self._now):
            case RunState.HOLDING:
                return self._holding(job)
            case RunState.LEAVING:
                place = self._reserved.get(job.key)
                return None if place is None else self._training(job, None, place)
            case RunState.WAITING:
                return self._waiting(job)
            case _:
                return None

    def _holding(self, job: JobView) -> core.Job | None:
        allocation = open_run(job)
        if allocation is None:
            return None
        if allocation.purpose == "Profile":
            return running_profile(job, self._entitled[job.key].tenant, allocation)
        partners, nodes = self._partners(job, allocation), self._nodes(job, job.spec.gpu_types, allocation)
        entitled = self._entitled[job.key]

        def made() -> core.Job:
            place = held(job, allocation, partners)
            return training(job, entitled, self._now, self._sizes, nodes=nodes, running=place)

        return self._known.of(job, ("holds", partners, nodes, entitled, self._sizes), made)

    def _training(self, job: JobView, nodes: tuple[str, ...] | None, place: core.Allocation | None) -> core.Job:
        entitled = self._entitled[job.key]

        def made() -> core.Job:
            return training(job, entitled, self._now, self._sizes, nodes=nodes, running=place)

        return self._known.of(job, ("wants", place, nodes, entitled, self._sizes), made)

    def _partners(self, job: JobView, allocation: Allocation) -> tuple[str, ...]:
        """Those of its planned partners that still have their part of its GPU, or a kept place on it."""
        if allocation.shared_gpu is None:
            return ()
        group = group_of(job.key, allocation)
        there = {str(key) for key in self._reserved}
        for name in group:
            other = self._state.jobs.get(key_of(name))
            theirs = open_run(other) if other is not None else None
            if other is not None and theirs is not None and theirs.state == "Granted":
                there |= {name} if group_of(other.key, theirs) == group else set()
        return tuple(sorted(there & group - {str(job.key)}))

    def _waiting(self, job: JobView) -> core.Job:
        if job.status.phase == "Profiling" and job.status.profile is not None and job.status.profile.request:
            request = job.status.profile.request
            nodes = self._nodes(job, [request.gpu_type])  # which the job need not name
            if request.shared:
                nodes = self._with_shared_gpus(nodes)
            return profiling(job, self._entitled[job.key].tenant, _fitting(request, self._rooms, nodes), nodes)
        return self._training(job, self._nodes(job, job.spec.gpu_types), self._reserved.get(job.key))

    def _nodes(
        self, job: JobView, gpu_types: Sequence[str], allocation: Allocation | None = None
    ) -> tuple[str, ...] | None:
        """The nodes of these GPU types, of all if there are none, that the template admits and whose GPUs leave a
        client as much memory as the job needs. None for all. The job may stay where it is."""
        nodes = self._known.admitted.of(
            job.constraints, tuple(gpu_types), lambda: _admitting(self._state, job, gpu_types)
        )
        small = too_small_clients(job, self._shared)
        if small:
            everywhere = [*(one.name for one in self._state.capacities), *new_node_objects(self._state)]
            everywhere = everywhere if nodes is None else list(nodes)
            nodes = tuple(name for name in everywhere if name not in small)
        if nodes is None or allocation is None:
            return nodes
        more = {share.node for share in allocation.workers}.difference(nodes)
        return (*nodes, *sorted(more)) if more else nodes

    def _with_shared_gpus(self, nodes: tuple[str, ...] | None) -> tuple[str, ...]:
        """Of these nodes those where two jobs can have one GPU."""
        shared = (capacity.name for capacity in self._shared if capacity.clients > 1)
        return tuple(name for name in shared if nodes is None or name in nodes)

    def _foreign(self, node: str) -> Amounts:
        """What pods hold there that stay."""
        total = NOTHING._replace(gpus=self._state.pods.claimed(node))
        for pod in self._state.pods.on_node(node):
            if self._stays(pod):
                total = total.plus(pod.requests)
        return total

    def _stays(self, pod: PodView) -> bool:
        """Whether the pod holds its room for longer than anyone would wait, and no plan can move it."""
        if pod.leaves_by is not None:
            return not self._now - OVERDUE_SECONDS <= pod.leaves_by <= self._now + LONGEST_LEAVE_SECONDS
        job = None if pod.member is None else self._state.jobs.get(pod.member.job)
        if job is None:
            return True
        allocation = open_run(job)
        if allocation is None:  # labels that the pod's owner wrote: the operator leaves no pod behind an ended run
            return True
        if run_state(job, self._now) is RunState.LEAVING:
            return overdue(allocation, self._now)
        return allocation.purpose == "Train" and not self._entitled[job.key].preemptible


def _admitting(state: ClusterState, job: JobView, gpu_types: Sequence[str]) -> tuple[str, ...] | None:
    """The nodes that the job's template admits, of those of these GPU types; None if these are all.

    A template that is no pod's admits no node. The operator reports it to the user; here it must not end the plan."""
    kinds = {one.name: one.gpu_type for one in state.capacities if one.gpu_type}
    kinds |= {group_name(pool.name): new_capacity(pool, how).gpu_type for pool, how in growing(state)}
    wanted = [name for name, gpu_type in kinds.items() if gpu_type in (gpu_types or (gpu_type,))]
    constraints = msgspec.json.decode(job.constraints)
    try:
        nodes = {**state.nodes, **new_node_objects(state)}
        resources = {one.name: one.resource for one in state.capacities}
        resources |= {group_name(pool.name): pool.resource or RESOURCE_GPU for pool, _ in growing(state)}
        names = [
            name for name in wanted if pod_spec_admits(constraints, nodes[name], worker_tolerations(resources[name]))
        ]
    except (TypeError, AttributeError, KeyError, ValueError):
        return ()
    return None if len(names) == len(wanted) else tuple(names)


def _fitting(request: ProfileRequest, rooms: Rooms, nodes: tuple[str, ...] | None) -> ProfileRequest:
    """The request, cut to what the best node has beside pods that are not ours or of jobs that never give way: the
    series then measures up to that.

    Pods that are about to end cut nothing: a matrix is for the job's life, and it would miss what they held.

    Memory is requested of the whole node, so the GPUs' part of what those pods hold is subtracted: as many series fit
    side by side as there are GPUs for.
    """
    best: Amounts | None = None
    for capacity, room in rooms:
        if capacity.gpu_type != request.gpu_type or room.gpus < request.gpus * capacity.devices_per_gpu:
            continue
        if nodes is not None and capacity.name not in nodes:
            continue
        memory = _beside_foreign(request.memory_bytes, request.gpus, capacity, room)
        cut = Amounts.of(request).at_most(room._replace(gpus=request.gpus))._replace(memory_bytes=memory)
        if min(cut) > 0 and (best is None or cut > best):
            best = cut
    if best is None:
        return request
    return request.model_copy(update=best.fields)


def has_full_room(job: core.Job, state: ClusterState, used: Mapping[str, Amounts]) -> bool:
    """Whether a node can give a profile series all that it asks for. The planner would cut it to what is left beside
    pods that are about to leave, and the series would measure only up to that."""
    fitting = (
        capacity.gpu_type in job.gpu_types
        and (job.nodes is None or capacity.name in job.nodes)
        and least_of(job, job.gpus * capacity.devices_per_gpu).fits(
            room_of(capacity).minus(used.get(capacity.name, NOTHING))
        )
        for capacity in state.capacities
    )
    return any(fitting)


def _beside_foreign(asked: int, gpus: int, capacity: NodeCapacity, room: Amounts) -> int:
    """Bytes of memory for `gpus` of a node of which `room` is not held by foreign pods."""
    share = room.memory_bytes * gpus // capacity.gpus
    held = (capacity.amounts.memory_bytes - room.memory_bytes) * gpus // capacity.gpus
    return min(asked, max(share, asked - held), room.memory_bytes)
