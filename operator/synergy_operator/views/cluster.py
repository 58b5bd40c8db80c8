"""The cluster, as validation and profile series see it: GPU types, their nodes, and settings of the policy."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from synergy_api.cluster.new_nodes import possible_nodes
from synergy_api.cluster.nodes import Object, is_ready
from synergy_api.cluster.pool import read_pools, with_devices
from synergy_api.cluster.pools import NodeCapacity, node_capacities
from synergy_api.cluster.slices import SliceView
from synergy_api.names import RESOURCE_GPU
from synergy_api.parts.queues import Preemption
from synergy_api.resources.scheduling_policy import Profiling, SchedulingPolicySpec


@dataclass(frozen=True)
class ClusterView:
    """GPU nodes, node health and policy settings that jobs depend on.

    `nodes` are the nodes with GPUs of a known type. `names` are the names of all nodes, `unready` those of all nodes
    that do not report Ready.
    """

    nodes: tuple[NodeCapacity, ...] = ()
    unready: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    profiling: Profiling = field(default_factory=Profiling)
    out_of_service: frozenset[str] = frozenset()
    """Nodes on which, as an administrator states by the taint node.kubernetes.io/out-of-service, nothing runs."""
    max_checkpoint_seconds: int = Preemption().max_checkpoint_seconds
    """The longest time that a job may take for its checkpoint after its lease ends."""
    possible: tuple[NodeCapacity, ...] = ()
    """Nodes that are not there, and that pools may get."""
    tenants: tuple[str, ...] = ()
    """The tenants that the policy names; empty for policies without tenants."""

    @cached_property
    def by_type(self) -> Mapping[str, tuple[NodeCapacity, ...]]:
        """The nodes of each GPU type. Types and nodes are sorted by name."""
        kinds = sorted({node.gpu_type for node in self.nodes})
        return {kind: tuple(node for node in self.nodes if node.gpu_type == kind) for kind in kinds}

    @cached_property
    def types_of_templates(self) -> tuple[str, ...] | None:
        """The GPU types on which a pod that asks for nvidia.com/gpu has whole GPUs; empty for all, None for none. On
        other nodes GPUs have another name, are devices of DRA, or are shared."""
        plain = tuple(
            kind
            for kind, nodes in self.by_type.items()
            if all(node.resource == RESOURCE_GPU and node.replicas == 1 for node in nodes)
        )
        if len(plain) == len(self.by_type):
            return ()
        return plain or None

    def allowed_types(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """The GPU types of the cluster that a job with these `spec.gpuTypes` may use. An empty `wanted` allows all."""
        allowed = frozenset(wanted)
        return tuple(kind for kind in self.by_type if not allowed or kind in allowed)

    @cached_property
    def grown(self) -> "ClusterView":
        """The cluster with all the nodes that its pools may get: what a job may ask for."""
        return replace(self, nodes=(*self.nodes, *self.possible)) if self.possible else self

    def whole_workers(self, gpu_type: str, gpus: int) -> tuple[int, int]:
        """The GPUs of a type in workers of so many: the most on one node, and those of all nodes."""
        found = self._whole_workers.get((gpu_type, gpus))
        if found is None:
            counts = [node.gpus // gpus * gpus for node in self.by_type[gpu_type]]
            found = self._whole_workers[gpu_type, gpus] = (max(counts), sum(counts))
        return found

    def total(self, gpu_type: str, field: str) -> int:
        """The sum of one field of the amounts of all nodes of a type."""
        found = self._totals.get((gpu_type, field))
        if found is None:
            found = sum(getattr(node.amounts, field) for node in self.by_type[gpu_type])
            self._totals[gpu_type, field] = found
        return found

    @cached_property
    def _whole_workers(self) -> dict[tuple[str, int], tuple[int, int]]:
        return {}

    @cached_property
    def _totals(self) -> dict[tuple[str, str], int]:
        return {}

    def nodes_changed_since(self, before: "ClusterView") -> frozenset[str]:
        """The nodes that came, went, or are lost or out of service now and were not, or the other way round."""
        return (
            (self.names ^ before.names)
            | (self.unready ^ before.unready)
            | (self.out_of_service ^ before.out_of_service)
        )

    def lost(self, node: str) -> bool:
        """The node does not exist or does not report Ready, so the operator cannot see how its pods end."""
        return node not in self.names or node in self.unready

    def dead(self, node: str) -> bool:
        """Certainly nothing runs on the node: its Node object is gone, or it is out of service."""
        return node not in self.names or node in self.out_of_service


_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"


def _is_out_of_service(node: Object) -> bool:
    taints = (node.get("spec") or {}).get("taints") or []
    return any(taint.get("key") == _OUT_OF_SERVICE for taint in taints)


def read_cluster(
    nodes: Iterable[Object],
    pools: Iterable[Object],
    policy: SchedulingPolicySpec,
    slices: Iterable[SliceView] = (),
) -> ClusterView:
    """The cluster from Node and GPUPool objects and the devices of ResourceSlices; pools that do not parse are left to
    the extender to report."""
    listed = list(nodes)
    read = read_pools(pools)[0]
    found = node_capacities(with_devices(listed, slices), read)
    return ClusterView(
        nodes=tuple(node for node in found if node.gpu_type and node.gpus > 0),
        unready=frozenset(str(node["metadata"]["name"]) for node in listed if not is_ready(node)),
        names=frozenset(str(node["metadata"]["name"]) for node in listed),
        out_of_service=frozenset(str(node["metadata"]["name"]) for node in listed if _is_out_of_service(node)),
        possible=possible_nodes(read, found),
        profiling=policy.profiling,
        max_checkpoint_seconds=policy.preemption.max_checkpoint_seconds,
        tenants=tuple(tenant.name for tenant in policy.tenants) if policy.policy == "hierarchical" else (),
    )
