"""The cluster as the planner's steps see it at one moment."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from synergy_api.amounts import Amounts
from synergy_api.cluster.nodes import Object
from synergy_api.cluster.pool import Pool
from synergy_api.cluster.pools import NodeCapacity
from synergy_api.cluster.priority_classes import PriorityClasses
from synergy_api.cluster.slices import DeviceKey
from synergy_api.cluster.tenancy import Tenancy
from synergy_core.selection.failing_nodes import FailingNode
from synergy_extender.cluster.node_requests.request import NodeRequest
from synergy_extender.cluster.pod_index import PodIndex
from synergy_extender.cluster.quota_views import QuotaView
from synergy_extender.cluster.views import JobView, Key


@dataclass(frozen=True)
class ClusterState:
    """Jobs that parse, GPU nodes in order of name, all pods. `allocatable` has every node, `nodes` the GPU nodes'
    objects by name (labels and taints)."""

    jobs: Mapping[Key, JobView]
    capacities: Sequence[NodeCapacity]
    nodes: Mapping[str, Object]
    allocatable: Mapping[str, Amounts]
    pods: PodIndex
    quotas: Sequence[QuotaView] = ()
    """All ResourceQuotas."""
    services: Set[Key] = frozenset()
    """Jobs whose headless Service is there."""
    priority_class: str = ""
    """The priority class of pods whose template names none."""
    tenancy: Tenancy = field(default_factory=Tenancy)
    failing: Mapping[str, FailingNode] = field(default_factory=dict)
    """Nodes that keep failing jobs; `capacities` takes them into account."""
    classes: PriorityClasses = field(default_factory=PriorityClasses)
    claimed: Set[DeviceKey] = frozenset()
    """The devices of DRA that claims hold, those of our workers included."""
    pools: Sequence[Pool] = ()
    """All GPUPools, in order of name."""
    requests: Sequence[NodeRequest] = ()
    """Nodes that are asked for."""
    grows: bool = False
    """Whether nodes may be asked for at all."""
