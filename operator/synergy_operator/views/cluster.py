"""The cluster as validation and profile series see it: GPU types, their nodes, what the policy says to jobs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from synergy_api.nodes import Object, is_ready
from synergy_api.pools import NodeCapacity, node_capacities, read_pools
from synergy_api.queues import Preemption
from synergy_api.scheduling_policy import Profiling, SchedulingPolicySpec


@dataclass(frozen=True)
class ClusterView:
    """`nodes` have GPUs of a known type. `unready` names all nodes that are there but do not report as ready;
    `names` all nodes that are there."""

    nodes: tuple[NodeCapacity, ...] = ()
    unready: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    profiling: Profiling = field(default_factory=Profiling)
    out_of_service: frozenset[str] = frozenset()
    """Nodes of which an administrator says that nothing runs there (taint node.kubernetes.io/out-of-service)."""
    max_checkpoint_seconds: int = Preemption().max_checkpoint_seconds
    """How long a job may take for its checkpoint after its lease, at the most."""
    tenants: tuple[str, ...] = ()
    """Those that the policy names; none where it does not go by tenants."""

    @cached_property
    def by_type(self) -> Mapping[str, tuple[NodeCapacity, ...]]:
        """The nodes of each GPU type, types and nodes in order of name."""
        kinds = sorted({node.gpu_type for node in self.nodes})
        return {kind: tuple(node for node in self.nodes if node.gpu_type == kind) for kind in kinds}

    def allowed_types(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """The types that are there and that a job with these `spec.gpuTypes` may use; empty means any."""
        allowed = frozenset(wanted)
        return tuple(kind for kind in self.by_type if not allowed or kind in allowed)

    def lost(self, node: str) -> bool:
        """The node is gone or does not report: what runs there cannot be seen to end."""
        return node not in self.names or node in self.unready

    def dead(self, node: str) -> bool:
        """Nothing runs on the node for certain: its Node object is gone, or it is out of service."""
        return node not in self.names or node in self.out_of_service


_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"


def _is_out_of_service(node: Object) -> bool:
    taints = (node.get("spec") or {}).get("taints") or []
    return any(taint.get("key") == _OUT_OF_SERVICE for taint in taints)


def read_cluster(nodes: Iterable[Object], pools: Iterable[Object], policy: SchedulingPolicySpec) -> ClusterView:
    """The cluster from Node and GPUPool objects; pools that do not parse are left to the extender to report."""
    listed = list(nodes)
    found = node_capacities(listed, read_pools(pools)[0])
    return ClusterView(
        nodes=tuple(node for node in found if node.gpu_type and node.gpus > 0),
        unready=frozenset(str(node["metadata"]["name"]) for node in listed if not is_ready(node)),
        names=frozenset(str(node["metadata"]["name"]) for node in listed),
        out_of_service=frozenset(str(node["metadata"]["name"]) for node in listed if _is_out_of_service(node)),
        profiling=policy.profiling,
        max_checkpoint_seconds=policy.preemption.max_checkpoint_seconds,
        tenants=tuple(tenant.name for tenant in policy.tenants) if policy.policy == "hierarchical" else (),
    )
