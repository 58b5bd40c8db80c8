"""What each GPU node offers to jobs, from Node objects and GPUPools. Pure; shared by operator and extender.

A node that two pools claim, or whose numbers make no sense, is reported as a `PoolProblem` on its `NodeCapacity` and
never stops the others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from synergy_api.amounts import DIMENSIONS, NOTHING, Amounts
from synergy_api.cluster.closures import Closure, closures_of
from synergy_api.cluster.nodes import Object, is_cordoned, is_ready, labels_of, repelling_taint
from synergy_api.cluster.pool import DiscoveryLabels, Pool, PoolProblem, offered_amounts, replicas_of
from synergy_api.cluster.slices import Device
from synergy_api.devices import is_mig, labels_prefix, offered_resources
from synergy_api.names import GPU_RESOURCES, RESOURCE_GPU, RESOURCE_SHARED_GPU
from synergy_api.reasons import Reason, say

LABEL_PRODUCT: Final = "nvidia.com/gpu.product"
_COUNT: Final = "count"
_MEMORY: Final = "memory"
_PRODUCT: Final = "product"
_MPS: Final = "mps"

WORKER_TOLERATIONS: Final[tuple[Mapping[str, str], ...]] = ({"key": RESOURCE_GPU, "operator": "Exists"},)
"""What every worker and profile pod tolerates beside its template's own: the customary taint of NVIDIA's nodes."""


def worker_tolerations(resource: str) -> tuple[Mapping[str, str], ...]:
    """What pods on nodes that offer this resource tolerate: by custom, the taint of GPU nodes has its name."""
    if resource in GPU_RESOURCES:
        return WORKER_TOLERATIONS
    return (*WORKER_TOLERATIONS, {"key": resource, "operator": "Exists"})


@dataclass(frozen=True)
class NodeCapacity:
    """What one node offers to jobs of ours, before any pod.

    `amounts` are allocatable minus the pool's systemReserved, with GPUs and not devices: where GPUs are shared the
    device plugin offers each as `replicas` devices of `resource`. `schedulable` is false for a node that takes nothing
    new (not ready, cordoned, tainted, of unknown type); what runs there keeps running.
    """

    name: str
    gpu_type: str
    amounts: Amounts
    schedulable: bool = True
    replicas: int = 1
    storage_bytes_per_s: int | None = None
    price_per_hour: float = 0.0
    pool: str | None = None
    problem: PoolProblem | None = None
    gpus_built_in: int = 0
    """Healthy or not."""
    gpu_memory_bytes: int = 0
    """Of one GPU; 0 where the node does not say."""
    mps: bool = False
    """Whether plans may share its GPUs: the node says MPS, and its pool does not say otherwise."""
    client_thread_percent: int = 100
    """Of a GPU's threads, what MPS leaves each client, one that has the GPU alone too: the device plugin's 100 /
    replicas, whether plans may share its GPUs or not."""
    packed: bool = False
    resource: str = RESOURCE_GPU
    """What pods ask for to get its GPUs."""
    gpu_resources: tuple[str, ...] = GPU_RESOURCES
    """What pods hold of them is counted under these names."""
    devices: tuple[Device, ...] = ()
    """With DRA: its GPUs one by one, unhealthy ones included. A job is given some of these."""
    domains: tuple[str, ...] = ()
    """What the node is part of, the widest first, as its pool's topology names them."""
    closures: tuple[Closure, ...] = ()
    """When no job may run on it, in order of time."""

    @property
    def exact(self) -> bool:
        """Whether which clients have a GPU together can be chosen: there is but one GPU, the plugin packs, or claims
        name the GPU."""
        return self.packed or self.gpus_built_in <= 1 or bool(self.devices)

    @property
    def gpus(self) -> int:
        """Allocatable GPUs."""
        return self.amounts.gpus

    @property
    def devices_per_gpu(self) -> int:
        """How many devices a job asks for to have a GPU alone. Where a plugin distributes, one: it takes the emptiest
        GPU. No job shares while there are no more clients than GPUs."""
        return self.replicas if self.exact else 1

    @property
    def clients(self) -> int:
        """How many jobs plans may give one GPU."""
        return self.replicas if self.mps and self.exact else 1

    @property
    def by_order(self) -> bool:
        """Whether the order in which pods come decides which jobs share: several shared GPUs, of which the plugin fills
        the fullest first."""
        return self.replicas > 1 and self.packed and self.gpus_built_in > 1 and not self.devices


def node_capacities(
    nodes: Iterable[Object], pools: Iterable[Pool], tolerations: Sequence[Object] = WORKER_TOLERATIONS
) -> list[NodeCapacity]:
    """Capacity of each GPU node, in order of name. Nodes without GPUs that no pool selects are left out."""
    ordered = sorted(pools, key=lambda pool: pool.name)
    found = (_capacity(node, ordered, tolerations) for node in nodes)
    return sorted((c for c in found if c is not None), key=lambda c: c.name)


def pool_problems(pools: Iterable[Pool], capacities: Iterable[NodeCapacity]) -> list[PoolProblem]:
    """Problems that concern pools: those found on nodes, each once, and pools that select no node."""
    listed = list(capacities)
    found = {c.problem for c in listed if c.problem is not None and c.problem.pools}
    used = {c.pool for c in listed} | {name for problem in found for name in problem.pools}
    for pool in pools:
        if pool.name not in used:
            found.add(PoolProblem(say(Reason.NO_NODES), (pool.name,)))
    return sorted(found, key=lambda p: (p.pools, p.finding.reason, p.finding.message))


def _capacity(node: Object, pools: Sequence[Pool], tolerations: Sequence[Object]) -> NodeCapacity | None:
    name = str(node.get("metadata", {}).get("name", ""))
    labels = labels_of(node)
    claims = [pool for pool in pools if pool.selects(labels)]
    allocatable = node.get("status", {}).get("allocatable") or {}
    pool = claims[0] if claims else None
    resources = offered_resources(pool.resource if pool else None, allocatable)
    devices = pool.devices_of(node) if pool else ()
    if not claims and not any(name in allocatable for name in resources) and LABEL_PRODUCT not in labels:
        return None
    try:
        offered = offered_amounts(node, pool, resources)
    except ValueError as error:
        problem = PoolProblem(say(Reason.INVALID_NODE, node=name, problem=error))
        return NodeCapacity(name, _gpu_type(pool, labels, resources), NOTHING, schedulable=False, problem=problem)
    reserved = _reserved(pool)
    gpu_type = _gpu_type(pool, labels, resources)
    resource = _asked_for(resources, allocatable)
    of_node = DiscoveryLabels(labels, labels_prefix(resource))
    replicas = replicas_of(pool, of_node, devices)
    gpus = offered.gpus // replicas
    closures, unread = _closures(name, node, claims)
    return NodeCapacity(
        name=name,
        gpu_type=gpu_type,
        amounts=offered.minus(reserved).at_least(NOTHING)._replace(gpus=gpus),
        schedulable=(
            bool(gpu_type)
            and unread is None
            and is_ready(node)
            and not is_cordoned(node)
            and repelling_taint(node, (*tolerations, *worker_tolerations(resource))) is None
        ),
        replicas=replicas,
        gpus_built_in=max(gpus, len(devices), of_node.number(_COUNT)),
        gpu_memory_bytes=min((one.gpu_memory_bytes for one in devices), default=of_node.number(_MEMORY) << 20),
        client_thread_percent=max(1, 100 // replicas) if _strategy(pool, of_node) == _MPS else 100,
        mps=_strategy(pool, of_node) == _MPS and (pool is None or pool.spec.sharing.mode == "MPS"),
        packed=pool is not None and pool.spec.sharing.preference == "Packed",
        resource=resource,
        gpu_resources=resources,
        devices=devices,
        storage_bytes_per_s=pool.spec.storage_bandwidth if pool else None,
        price_per_hour=pool.spec.price_per_hour if pool else 0.0,
        pool=pool.name if pool else None,
        domains=_domains(pool, labels),
        closures=closures,
        problem=unread or _problem(name, of_node, claims, gpu_type, not reserved.fits(offered)),
    )


def _closures(name: str, node: Object, claims: Sequence[Pool]) -> tuple[tuple[Closure, ...], PoolProblem | None]:
    """When the node must be empty, and the problem of a time that cannot be read: then no job comes, and none has to
    leave for a typing error."""
    try:
        return closures_of(node, claims[0].spec if claims else None), None
    except ValueError as error:
        finding = say(Reason.INVALID_NODE, node=name, problem=error)
        return (), PoolProblem(finding, tuple(pool.name for pool in claims[:1]))


def _asked_for(resources: Sequence[str], allocatable: Object) -> str:
    """What pods ask for, of the resources that are a node's GPUs."""
    shared = RESOURCE_SHARED_GPU in resources and RESOURCE_SHARED_GPU in allocatable
    return RESOURCE_SHARED_GPU if shared else resources[0]


def _reserved(pool: Pool | None) -> Amounts:
    if pool is None:
        return NOTHING
    return Amounts.parse({one.resource: getattr(pool.spec.system_reserved, one.spec_field) or 0 for one in DIMENSIONS})


def _gpu_type(pool: Pool | None, labels: Mapping[str, str], resources: Sequence[str]) -> str:
    """The pool's name for it, else GPU feature discovery's product without the mark of sharing. A MIG profile has a
    product of its own; where it is not labelled, that of the GPU and the profile."""
    if pool is not None:
        return pool.spec.gpu_type
    product = labels.get(LABEL_PRODUCT, "").removesuffix("-SHARED")
    if not is_mig(resources[0]):
        return product
    profile = resources[0].rpartition("/mig-")[2]
    return labels.get(f"{resources[0]}.{_PRODUCT}", f"{product}-MIG-{profile}" if product else "")


def _domains(pool: Pool | None, labels: Mapping[str, str]) -> tuple[str, ...]:
    """Up to the first label that the node lacks: of a rack without its block nobody knows which one it is."""
    keys = pool.spec.topology if pool is not None else ()
    return tuple(takewhile(bool, (labels.get(key, "") for key in keys)))


def _strategy(pool: Pool | None, labels: DiscoveryLabels) -> str:
    """How its GPUs are shared, as the node is labelled; else as the pool says."""
    said = "none" if pool is None else pool.spec.sharing.mode.lower()
    told = labels.get("sharing-strategy")
    return said if told is None else told


def _problem(
    name: str, labels: DiscoveryLabels, claims: Sequence[Pool], gpu_type: str, reserved_too_large: bool
) -> PoolProblem | None:
    names = tuple(pool.name for pool in claims)
    if len(claims) > 1:
        return PoolProblem(say(Reason.AMBIGUOUS_POOL, pools=", ".join(names), used=names[0]), names)
    if not gpu_type:
        return PoolProblem(say(Reason.NODE_OF_UNKNOWN_TYPE, node=name, label=LABEL_PRODUCT))
    if reserved_too_large:
        return PoolProblem(say(Reason.RESERVED_TOO_LARGE, node=name), names)
    return _other_sharing(name, labels, claims[0]) if claims else None


def _other_sharing(name: str, labels: DiscoveryLabels, pool: Pool) -> PoolProblem | None:
    sharing = pool.spec.sharing
    strategy, replicas = labels.get("sharing-strategy"), labels.get("replicas") or "0"
    field, said, label, value = "replicas", str(sharing.replicas), labels.key("replicas"), replicas
    if strategy is not None and (strategy == _MPS) != (sharing.mode == "MPS"):
        field, said, label, value = "mode", sharing.mode, labels.key("sharing-strategy"), strategy
    elif replicas in ("0", said):
        return None
    return PoolProblem(
        say(Reason.SHARING_MISMATCH, field=field, said=said, node=name, label=label, value=value), (pool.name,)
    )
