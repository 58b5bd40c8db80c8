"""From the cluster to the planner's Snapshot. Pure: the same cluster and moment give the same snapshot.

Room is counted twice over. Pods that are not of a run that the plan moves - other people's, and ours that outlived
their run - are `*_used`. Revoked runs are absent from a round plan, whose places start when they are
gone; in a fill plan, whose places start now, they count as used as far as their room is not reserved.
"""

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from synergy_api.amounts import NOTHING, Amounts
from synergy_api.cluster.nodes import pod_spec_admits
from synergy_api.cluster.pools import WORKER_TOLERATIONS, NodeCapacity
from synergy_api.cluster.tenancy import Tenancy
from synergy_api.names import RESOURCE_SHARED_GPU
from synergy_api.parts.allocation import Allocation, NodeShare
from synergy_api.parts.profile import ProfileRequest
from synergy_api.reasons import Finding, Reason, say
from synergy_api.resources.scheduling_policy import SchedulingPolicySpec
from synergy_api.timestamps import parse_time
from synergy_core.model import snapshot as core
from synergy_core.model.config import Mode
from synergy_extender.cluster.dimensions import least_of, node_fields
from synergy_extender.cluster.ledger import amounts_of_share
from synergy_extender.cluster.own_pods import own_pods
from synergy_extender.cluster.placements import sizes_of
from synergy_extender.cluster.run_state import RunState, open_run, run_state
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import JobView, Key, PodView
from synergy_extender.colocation.devices import shares_of
from synergy_extender.colocation.order import Group, group_of, key_of, occupancy
from synergy_extender.colocation.usages import too_small_clients
from synergy_extender.snapshot.entitlements import Entitlements, entitlements
from synergy_extender.snapshot.quotas import NamespaceQuotas
from synergy_extender.snapshot.requests import held, profiling, running_profile, training

LONGEST_LEAVE_SECONDS = 600.0
"""A pod whose grace period ends later than this counts as one that stays: its owner chooses that period, of years even,
and profile series of all others would wait for it."""
OVERDUE_SECONDS = 60.0
"""What holds its place this long after its lease or grace has ended may never leave: plans stop counting on it."""


_IN_PLANS = (RunState.WAITING, RunState.HOLDING, RunState.LEAVING)
Rooms = Sequence[tuple[NodeCapacity, Amounts]]
"""Nodes that take pods now, each with what is left of it."""


@dataclass(frozen=True)
class BuiltSnapshot:
    """A snapshot, the jobs that could not stand in it with the reason, and what the tenants' caps let jobs ask for."""

    snapshot: core.Snapshot
    refused: Mapping[Key, Finding] = field(default_factory=dict)
    entitled: Entitlements = field(default_factory=Entitlements)


def build_snapshot(
    state: ClusterState,
    *,
    mode: Mode,
    now: float,
    round_s: int,
    reserved: Mapping[Key, core.Allocation] | None = None,
    tenants: tuple[core.Tenant, ...] = (),
    left_out: Mapping[Key, Finding] | None = None,
) -> BuiltSnapshot:
    """The snapshot at `now`. `reserved` are the places kept, in fill mode, for jobs that move there once they left;
    `tenants` are those that the policy names; others that jobs are of stand beside them, with a weight of 1.
    `left_out` are jobs that plans do without for now, with the reason: those that wait get no place, and of those that
    run the pods that are there count as used, since nothing can revoke them."""
    kept = reserved if reserved is not None and mode == "fill" else {}
    entitled = entitlements(state.jobs.values(), state.tenancy, now)
    requests = _Requests(state, now, kept, entitled)
    unwritten = left_out or {}
    jobs: list[core.Job] = []
    refused: dict[Key, Finding] = {}
    for key in sorted(state.jobs):
        stands = run_state(state.jobs[key], now)
        if key in unwritten and stands in _IN_PLANS:
            refused[key] = unwritten[key]
            continue
        if key in entitled.waits and stands is RunState.WAITING:
            refused[key] = entitled.waits[key]
            continue
        try:
            request = requests.of(state.jobs[key])
        except core.FieldError as error:
            refused[key] = say(Reason.CANNOT_BE_PLANNED, problem=str(error))
            continue
        if request is not None:
            jobs.append(request)
    used = _used(state, mode, now, {job.name for job in jobs}, kept, unwritten=unwritten)
    jobs = [job for job in jobs if job.purpose == "train" or job.running or _has_full_room(job, state, used)]
    nodes = tuple(
        _node(capacity, used.get(capacity.name, NOTHING), open_to_new=_takes_new(capacity, state, mode))
        for capacity in state.capacities
        if capacity.gpu_type
    )
    quotas = NamespaceQuotas(state)
    if quotas:
        jobs = quotas.with_draws(jobs, {str(key): job for key, job in state.jobs.items()})
    snapshot = core.Snapshot(
        nodes=nodes,
        jobs=tuple(jobs),
        now=now,
        round_s=float(round_s),
        tenants=_all_tenants(tenants, jobs, state.tenancy),
        quotas=quotas.limits(_moved(state, mode, now, {job.name for job in jobs})),
    )
    return BuiltSnapshot(snapshot, refused, entitled)


def _moved(state: ClusterState, mode: Mode, now: float, planned: set[str]) -> Iterable[JobView]:
    """The jobs whose running pods the plan may move, or counts as gone by the time that its places start."""
    for job in state.jobs.values():
        allocation = open_run(job)
        if allocation is None:
            continue
        if run_state(job, now) is RunState.LEAVING:
            if mode == "round" and not _overdue(allocation, now):
                yield job
        elif str(job.key) in planned:
            yield job


def _all_tenants(named: tuple[core.Tenant, ...], jobs: Iterable[core.Job], tenancy: Tenancy) -> tuple[core.Tenant, ...]:
    """Those that the policy names, with the Tenants and those that jobs are of: a file's tenants are all that there
    are, or none."""
    weights = {tenant.name: tenant.spec.weight for tenant in tenancy.tenants}
    if not named and not weights:
        return ()
    unnamed = {job.tenant for job in jobs if job.tenant} - {tenant.name for tenant in named}
    return (*named, *(core.Tenant(name, weights.get(name, 1.0)) for name in sorted(unnamed)))


def tenants_of(spec: SchedulingPolicySpec) -> tuple[core.Tenant, ...]:
    """The tenants of a policy in the planner's words."""
    return tuple(core.Tenant(tenant.name, tenant.weight, tenant.policy) for tenant in spec.tenants)


class _Requests:
    """What each job asks of the planner."""

    def __init__(
        self, state: ClusterState, now: float, reserved: Mapping[Key, core.Allocation], entitled: Entitlements
    ) -> None:
        self._entitled = entitled.by_job
        self._state = state
        self._now = now
        self._reserved = reserved
        self._sizes = sizes_of(state.capacities)
        self._admitted: dict[str, tuple[str, ...] | None] = {}
        self._shared = [capacity for capacity in state.capacities if capacity.mps]

    @cached_property
    def _rooms(self) -> Rooms:
        """What each node has beside pods that stay, found once for all profile series that ask."""
        return [
            (capacity, _capacity(capacity).minus(self._foreign(capacity.name)))
            for capacity in self._state.capacities
            if capacity.schedulable
        ]

    def of(self, job: JobView) -> core.Job | None:
        """The job as the planner shall see it; None if it plays no part."""
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
        place = held(job, allocation, self._partners(job, allocation))
        return self._training(job, self._nodes(job, allocation), place)

    def _training(self, job: JobView, nodes: tuple[str, ...] | None, place: core.Allocation | None) -> core.Job:
        return training(job, self._entitled[job.key], self._now, self._sizes, nodes=nodes, running=place)

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
        nodes = self._nodes(job)
        if job.status.phase == "Profiling" and job.status.profile is not None and job.status.profile.request:
            request = _fitting(job.status.profile.request, self._rooms, nodes)
            return profiling(job, self._entitled[job.key].tenant, request, nodes)
        return self._training(job, nodes, self._reserved.get(job.key))

    def _nodes(self, job: JobView, allocation: Allocation | None = None) -> tuple[str, ...] | None:
        """The nodes that the template admits and whose GPUs leave a client as much memory as the job needs, None for
        all. Where the job stands it may stay."""
        kind = json.dumps(job.constraints, sort_keys=True)
        if kind not in self._admitted:
            self._admitted[kind] = _admitting(self._state, job)
        nodes = self._admitted[kind]
        small = too_small_clients(job, self._shared)
        if small:
            everywhere = [capacity.name for capacity in self._state.capacities] if nodes is None else nodes
            nodes = tuple(name for name in everywhere if name not in small)
        if nodes is None or allocation is None:
            return nodes
        return tuple(sorted({*nodes, *(share.node for share in allocation.workers)}))

    def _foreign(self, node: str) -> Amounts:
        """What pods hold there that stay."""
        total = NOTHING
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
            return _overdue(allocation, self._now)
        return allocation.purpose == "Train" and not self._entitled[job.key].preemptible


def _admitting(state: ClusterState, job: JobView) -> tuple[str, ...] | None:
    """A template that is no pod's admits no node. The operator tells its user so; here it must not end the plan."""
    try:
        names = [
            name
            for name in (capacity.name for capacity in state.capacities)
            if pod_spec_admits(job.constraints, state.nodes[name], WORKER_TOLERATIONS)
        ]
    except (TypeError, AttributeError, KeyError, ValueError):
        return ()
    return None if len(names) == len(state.capacities) else tuple(names)


def _fitting(request: ProfileRequest, rooms: Rooms, nodes: tuple[str, ...] | None) -> ProfileRequest:
    """The request, cut to what the best node has beside pods that are not ours or of jobs that never give way: the
    series then measures up to that.

    Pods that are about to end cut nothing: a matrix is for the job's life, and it would miss what they held.

    Memory is asked for by the node's whole, so the GPUs' part of what those pods hold is taken off: as many series fit
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


def _has_full_room(job: core.Job, state: ClusterState, used: Mapping[str, Amounts]) -> bool:
    """Whether a node can give a profile series all that it asks for. The planner would cut it to what is left beside
    pods that are about to leave, and the series would measure only up to that."""
    fitting = (
        capacity.gpu_type in job.gpu_types
        and (job.nodes is None or capacity.name in job.nodes)
        and least_of(job, job.gpus * capacity.devices_per_gpu).fits(
            _capacity(capacity).minus(used.get(capacity.name, NOTHING))
        )
        for capacity in state.capacities
    )
    return any(fitting)


def _beside_foreign(asked: int, gpus: int, capacity: NodeCapacity, room: Amounts) -> int:
    """Bytes of memory for `gpus` of a node of which `room` is not held by foreign pods."""
    share = room.memory_bytes * gpus // capacity.gpus
    held = (capacity.amounts.memory_bytes - room.memory_bytes) * gpus // capacity.gpus
    return min(asked, max(share, asked - held), room.memory_bytes)


def _used(
    state: ClusterState,
    mode: Mode,
    now: float,
    planned: set[str],
    reserved: Mapping[Key, core.Allocation],
    *,
    unwritten: Container[Key],
) -> dict[str, Amounts]:
    """What of each node is not the plan's to give: see the module's words. A run of which nothing can be written holds
    what its pods hold: what its allocation says cannot be taken back."""
    used = {capacity.name: state.pods.held(capacity.name) for capacity in state.capacities}
    leaving: dict[str, Amounts] = {}
    promised: dict[str, Amounts] = {}
    capacities = {capacity.name: capacity for capacity in state.capacities}
    for place in reserved.values():
        _add(promised, _shares(shares_of(place, capacities)))
    for job in state.jobs.values():
        allocation = open_run(job)
        if allocation is None:
            continue
        own = _held_by_run(state, job.key, allocation)
        _add(used, ((node, NOTHING.minus(amounts)) for node, amounts in own.items()))
        if run_state(job, now) is RunState.LEAVING:
            _add(used if mode == "round" and _overdue(allocation, now) else leaving, own.items())
        elif str(job.key) in planned:
            _add(promised, _on_its_way(allocation))
        else:
            _add(used, own.items())
            if job.key in unwritten and not own:
                continue
            _add(used, ((n, a.minus(own.get(n, NOTHING)).at_least(NOTHING)) for n, a in _shares(allocation.workers)))
    if mode == "fill":
        unpromised = {n: amounts.minus(promised.get(n, NOTHING)).at_least(NOTHING) for n, amounts in leaving.items()}
        _add(used, unpromised.items())
    return used


def _on_its_way(allocation: Allocation) -> list[tuple[str, Amounts]]:
    """What a granted run was promised and cannot use yet: all before it is admitted, then what it shall grow by."""
    given = dict(_shares(allocation.workers)) if allocation.admitted else {}
    goal = _shares(allocation.planned or allocation.workers)
    return [(node, amounts.minus(given.get(node, NOTHING)).at_least(NOTHING)) for node, amounts in goal]


def _shares(shares: Iterable[NodeShare]) -> list[tuple[str, Amounts]]:
    return [(share.node, amounts_of_share(share)) for share in shares]


def _held_by_run(state: ClusterState, job: Key, allocation: Allocation) -> dict[str, Amounts]:
    """What the run's pods hold by node, no more GPUs than it was given there: the rest would count as free."""
    own: dict[str, Amounts] = {}
    _add(own, ((pod.node, pod.requests) for pod in own_pods(job, allocation, state.pods) if pod.node))
    given = {node: amounts.gpus for node, amounts in _shares(allocation.workers)}
    return {node: amounts._replace(gpus=min(amounts.gpus, given[node])) for node, amounts in own.items()}


def _add(totals: dict[str, Amounts], more: Iterable[tuple[str, Amounts]]) -> None:
    for node, amounts in more:
        totals[node] = totals.get(node, NOTHING).plus(amounts)


def _overdue(allocation: Allocation, now: float) -> bool:
    until = allocation.lease_until
    return until is not None and now > parse_time(until) + OVERDUE_SECONDS


def _takes_new(capacity: NodeCapacity, state: ClusterState, mode: Mode) -> bool:
    """Where partners come by order, a newcomer could get a half-full GPU instead of its own. So no job is placed beside
    unplanned pods that hold part of a GPU, nor, between rounds, beside a job whose partner has gone."""
    if not capacity.by_order:
        return True
    pods = [pod for pod in state.pods.on_node(capacity.name) if pod.leaves_by is None]
    there = occupancy(pods, state.jobs, capacity.replicas)
    unplanned = [name for name in there.unplanned if not _is_ours(name, pods)]
    lone = [group for group in there.half_full(capacity.replicas) if _nobody_comes(group, state)]
    return not unplanned and not (mode == "fill" and lone)


def _is_ours(name: str, pods: Iterable[PodView]) -> bool:
    return any(f"{pod.namespace}/{pod.name}" == name and pod.member is not None for pod in pods)


def _nobody_comes(group: Group, state: ClusterState) -> bool:
    """Whether no member of the group still has to come to its GPU."""
    jobs = (state.jobs.get(key_of(name)) for name in group)
    runs = (open_run(job) for job in jobs if job is not None)
    return all(run is None or run.admitted for run in runs)


def _capacity(capacity: NodeCapacity) -> Amounts:
    """As pods ask for it: a GPU is the devices that a job asks for to have it alone."""
    return capacity.amounts._replace(gpus=capacity.gpus * capacity.devices_per_gpu)


def _node(capacity: NodeCapacity, used: Amounts, *, open_to_new: bool) -> core.Node:
    return core.Node(
        name=capacity.name,
        gpu_type=capacity.gpu_type,
        gpus=capacity.gpus,
        gpus_used=max(0, -(-used.gpus // capacity.devices_per_gpu)),
        replicas=capacity.clients,
        gpu_memory_bytes=capacity.gpu_memory_bytes,
        client_memory_bytes=capacity.gpu_memory_bytes // capacity.clients,
        client_thread_percent=capacity.client_thread_percent,
        schedulable=capacity.schedulable and open_to_new,
        price_per_hour=capacity.price_per_hour,
        devices_per_gpu=capacity.devices_per_gpu,
        counted_as="shared_gpus" if capacity.resource == RESOURCE_SHARED_GPU else "gpus",
        **node_fields(capacity.amounts, used),
    )
