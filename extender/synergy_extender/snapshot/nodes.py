"""Nodes as the planner sees them."""

from collections.abc import Iterable

from synergy_api.amounts import Amounts
from synergy_api.cluster.closures import next_closure
from synergy_api.cluster.pools import NodeCapacity
from synergy_api.devices import counted_as
from synergy_core.model import snapshot as core
from synergy_core.model.config import Mode
from synergy_extender.cluster.dimensions import node_fields
from synergy_extender.cluster.run_state import open_run
from synergy_extender.cluster.state import ClusterState
from synergy_extender.cluster.views import PodView
from synergy_extender.colocation.order import Group, key_of, occupancy


def takes_new(capacity: NodeCapacity, state: ClusterState, mode: Mode) -> bool:
    """Where partners come by order, a newcomer could get a half-full GPU instead of its own. So no job is placed beside
    unplanned pods that hold part of a GPU. Between rounds no job is placed beside one whose partner has gone."""
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


def room_of(capacity: NodeCapacity) -> Amounts:
    """As pods ask for it: a GPU is the devices that a job asks for to have it alone."""
    return capacity.amounts._replace(gpus=capacity.gpus * capacity.devices_per_gpu)


def node_of(
    capacity: NodeCapacity, used: Amounts, *, open_to_new: bool, now: float, leaving_s: float = 0.0
) -> core.Node:
    """The planner's node, of which `used` is held by pods of others. A job takes up to `leaving_s` for its checkpoint
    when it leaves, so it begins to leave that much before the node must be empty."""
    closure = next_closure(capacity.closures, now)
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
        domains=capacity.domains,
        domain_bytes_per_s=capacity.domain_bytes_per_s,
        empty_by=None if closure is None else closure.start - leaving_s,
        reopens_at=None if closure is None else closure.end,
        price_per_hour=capacity.price_per_hour,
        devices_per_gpu=capacity.devices_per_gpu,
        counted_as=counted_as(capacity.resource),
        **node_fields(capacity.amounts, used),
    )
