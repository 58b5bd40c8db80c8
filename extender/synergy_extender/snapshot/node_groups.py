"""Pools that can grow as the planner's node groups, and how far the requests for their nodes have come."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from synergy_api.amounts import NOTHING
from synergy_api.cluster.new_nodes import new_amounts
from synergy_api.cluster.nodes import Object
from synergy_api.cluster.pool import Pool
from synergy_api.cluster.pools import NodeCapacity
from synergy_api.devices import counted_as
from synergy_api.names import RESOURCE_GPU
from synergy_api.resources.pool_autoscaling import PoolAutoscaling
from synergy_api.timestamps import parse_time
from synergy_core.model import snapshot as core
from synergy_extender.cluster.dimensions import node_fields
from synergy_extender.cluster.node_requests.request import NodeRequest
from synergy_extender.cluster.state import ClusterState

_FIRST_WAIT_S: Final = 60.0
_LONGEST_WAIT_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class RequestState:
    """How far a request has come."""

    request: NodeRequest
    missing: int
    """Its nodes that do not take jobs yet."""
    failed_at: float | None = None
    """When it failed or timed out with nodes missing; None: it has not."""
    problem: str = ""

    @property
    def open(self) -> bool:
        """Whether its nodes may still come."""
        return self.missing > 0 and self.failed_at is None

    @property
    def failures(self) -> int:
        """Requests of the pool that have failed one after the other, this one included."""
        return self.request.failures + (self.failed_at is not None)

    @property
    def retry_at(self) -> float | None:
        """When the pool may ask again; None: it has not failed."""
        if self.failed_at is None:
            return None
        return self.failed_at + min(_FIRST_WAIT_S * 2.0 ** (self.failures - 1), _LONGEST_WAIT_S)


def group_name(pool: str) -> str:
    """The planner's name of a pool that can grow. No node can have it."""
    return f"GPUPool/{pool}"


def pool_of(group: str) -> str:
    """The pool of a group of that name."""
    return group.removeprefix("GPUPool/")


def growing(state: ClusterState) -> list[tuple[Pool, PoolAutoscaling]]:
    """The pools for which nodes may be asked for."""
    return [(pool, pool.spec.autoscaling) for pool in state.pools if state.grows and pool.spec.autoscaling is not None]


def request_states(state: ClusterState, now: float) -> dict[str, list[RequestState]]:
    """How far the requests of each growing pool have come, the oldest first.

    Nodes that came after a request count for the oldest that still lacks some.
    """
    found: dict[str, list[RequestState]] = {}
    for pool, how in growing(state):
        requests = [one for one in state.requests if one.pool == pool.name]
        left = _ready_since(pool, state)
        found[pool.name] = []
        for request in requests:
            came = [born for born in left if born >= request.created][: request.nodes]
            for born in came:
                left.remove(born)
            found[pool.name].append(_state(request, request.nodes - len(came), how, now))
    return found


def _ready_since(pool: Pool, state: ClusterState) -> list[float]:
    """When each of the pool's nodes that takes jobs was made."""
    there = (one for one in state.capacities if one.pool == pool.name and one.schedulable and one.gpus > 0)
    return sorted(_born(state.nodes[one.name]) for one in there)


def _born(node: Object) -> float:
    try:
        return parse_time(node["metadata"]["creationTimestamp"])
    except (KeyError, ValueError):
        return 0.0


def _state(request: NodeRequest, missing: int, how: PoolAutoscaling, now: float) -> RequestState:
    if missing == 0:
        return RequestState(request, 0)
    if request.failed_at is not None:
        return RequestState(request, missing, request.failed_at, request.problem)
    late_at = request.created + how.timeout_seconds
    if now >= late_at:
        return RequestState(request, missing, late_at, f"they are not there after {how.timeout_seconds} s")
    return RequestState(request, missing)


def node_groups(state: ClusterState, now: float) -> tuple[core.NodeGroup, ...]:
    """The pools that can grow, in order of name."""
    states = request_states(state, now)
    return tuple(_group(pool, how, states[pool.name], state.capacities, now) for pool, how in growing(state))


def _group(
    pool: Pool, how: PoolAutoscaling, requests: Sequence[RequestState], capacities: Iterable[NodeCapacity], now: float
) -> core.NodeGroup:
    amounts = new_amounts(pool, how)
    fields = {name: value for name, value in node_fields(amounts, NOTHING).items() if not name.endswith("_used")}
    retries = [one.retry_at for one in requests if one.retry_at is not None and one.retry_at > now]
    return core.NodeGroup(
        name=group_name(pool.name),
        gpu_type=pool.spec.gpu_type,
        gpus=how.node.gpus,
        price_per_hour=pool.spec.price_per_hour,
        counted_as=counted_as(pool.resource or RESOURCE_GPU),
        nodes=sum(one.pool == pool.name for one in capacities),
        max_nodes=how.max_nodes,
        waiting_s=float(how.wait_seconds),
        not_before=max(retries, default=None),
        promises=tuple(
            core.Promise(name=one.request.name, nodes=one.missing, at=_expected(one.request, how, now))
            for one in requests
            if one.open
        ),
        **fields,
    )


def _expected(request: NodeRequest, how: PoolAutoscaling, now: float) -> float:
    """As it usually takes; of one that takes longer, when it would have failed."""
    usual = request.created + how.provision_seconds
    return usual if now < usual else request.created + how.timeout_seconds


def new_node_objects(state: ClusterState) -> Mapping[str, Object]:
    """A Node as each growing pool would get it, by the planner's name of the pool: for what pod specs admit."""
    return {
        group_name(pool.name): {
            "metadata": {"name": group_name(pool.name), "labels": dict(pool.spec.node_selector)},
            "spec": {"taints": [taint.to_wire() for taint in how.taints]},
        }
        for pool, how in growing(state)
    }
