"""What each GPU node offers to jobs, from Node objects and GPUPools. Pure; shared by operator and extender.

A node that two pools claim, or whose numbers make no sense, is reported as a `PoolProblem` on its `NodeCapacity` and
never stops the others.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from pydantic import ValidationError

from synergy_api.amounts import DIMENSIONS, NOTHING, Amounts
from synergy_api.cluster.closures import Closure, closures_of
from synergy_api.cluster.nodes import Object, is_cordoned, is_ready, labels_of, repelling_taint
from synergy_api.names import GPU_RESOURCES, RESOURCE_GPU, RESOURCE_SHARED_GPU
from synergy_api.reasons import Finding, Reason, say
from synergy_api.resources.gpu_pool import GPUPoolSpec

LABEL_PRODUCT: Final = "nvidia.com/gpu.product"
LABEL_REPLICAS: Final = "nvidia.com/gpu.replicas"
LABEL_SHARING: Final = "nvidia.com/gpu.sharing-strategy"
LABEL_COUNT: Final = "nvidia.com/gpu.count"
LABEL_MEMORY: Final = "nvidia.com/gpu.memory"
_MPS: Final = "mps"
_MOST_NUMBER: Final = 1 << 40

WORKER_TOLERATIONS: Final[tuple[Mapping[str, str], ...]] = ({"key": RESOURCE_GPU, "operator": "Exists"},)
"""What every worker and profile pod tolerates beside its template's own: the customary taint of GPU nodes."""


@dataclass(frozen=True)
class PoolProblem:
    """One contradiction, in words that say what to change. `pools` are the pools it concerns, possibly none."""

    finding: Finding
    pools: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pool:
    """A GPUPool by its name."""

    name: str
    spec: GPUPoolSpec

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels belongs to the pool."""
        return all(labels.get(key) == value for key, value in self.spec.node_selector.items())


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
    domains: tuple[str, ...] = ()
    """What the node is part of, the widest first, as its pool's topology names them."""
    domain_bytes_per_s: tuple[float, ...] = ()
    """Bandwidth of its link within each of these domains; 0: not known."""
    closures: tuple[Closure, ...] = ()
    """When no job may run on it, in order of time."""

    @property
    def exact(self) -> bool:
        """Whether which clients have a GPU together can be chosen: there is but one GPU, or the plugin packs."""
        return self.packed or self.gpus_built_in <= 1

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
        return self.replicas > 1 and self.packed and self.gpus_built_in > 1


def read_pools(objects: Iterable[Object]) -> tuple[list[Pool], list[PoolProblem]]:
    """GPUPool objects as pools in order of name; those that do not parse as problems that name the field."""
    pools: list[Pool] = []
    problems: list[PoolProblem] = []
    for item in objects:
        name = str(item.get("metadata", {}).get("name", ""))
        try:
            pools.append(Pool(name, GPUPoolSpec.model_validate(item.get("spec") or {})))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in ("spec", *first["loc"]))
            finding = say(Reason.INVALID_POOL, problem=f"{field}: {first['msg']}")
            problems.append(PoolProblem(finding, (name,)))
    return sorted(pools, key=lambda pool: pool.name), problems


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
        if pool.name not in used and pool.spec.autoscaling is None:
            found.add(PoolProblem(say(Reason.NO_NODES), (pool.name,)))
    return sorted(found, key=lambda p: (p.pools, p.finding.reason, p.finding.message))


def _capacity(node: Object, pools: Sequence[Pool], tolerations: Sequence[Object]) -> NodeCapacity | None:
    name = str(node.get("metadata", {}).get("name", ""))
    labels = labels_of(node)
    claims = [pool for pool in pools if pool.selects(labels)]
    allocatable = node.get("status", {}).get("allocatable") or {}
    if not claims and not any(name in allocatable for name in GPU_RESOURCES) and LABEL_PRODUCT not in labels:
        return None
    pool = claims[0] if claims else None
    try:
        offered = _offered(allocatable)
    except ValueError as error:
        problem = PoolProblem(say(Reason.INVALID_NODE, node=name, problem=error))
        return NodeCapacity(name, _gpu_type(pool, labels), NOTHING, schedulable=False, problem=problem)
    reserved = _reserved(pool)
    gpu_type = _gpu_type(pool, labels)
    replicas = _replicas(pool, labels)
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
            and repelling_taint(node, tolerations) is None
        ),
        replicas=replicas,
        gpus_built_in=max(gpus, _number(labels, LABEL_COUNT)),
        gpu_memory_bytes=_number(labels, LABEL_MEMORY) << 20,
        client_thread_percent=max(1, 100 // replicas) if _strategy(pool, labels) == _MPS else 100,
        mps=_strategy(pool, labels) == _MPS and (pool is None or pool.spec.sharing.mode == "MPS"),
        packed=pool is not None and pool.spec.sharing.preference == "Packed",
        resource=RESOURCE_SHARED_GPU if RESOURCE_SHARED_GPU in allocatable else RESOURCE_GPU,
        storage_bytes_per_s=pool.spec.storage_bandwidth if pool else None,
        price_per_hour=pool.spec.price_per_hour if pool else 0.0,
        pool=pool.name if pool else None,
        domains=_domains(pool, labels),
        domain_bytes_per_s=_bandwidths(pool, labels),
        closures=closures,
        problem=unread or _problem(name, labels, claims, not reserved.fits(offered)),
    )


def _closures(name: str, node: Object, claims: Sequence[Pool]) -> tuple[tuple[Closure, ...], PoolProblem | None]:
    """When the node must be empty, and the problem of a time that cannot be read: then no job comes, and none has to
    leave for a typing error."""
    try:
        return closures_of(node, claims[0].spec if claims else None), None
    except ValueError as error:
        finding = say(Reason.INVALID_NODE, node=name, problem=error)
        return (), PoolProblem(finding, tuple(pool.name for pool in claims[:1]))


def _offered(allocatable: Object) -> Amounts:
    try:
        return Amounts.parse(allocatable)
    except ValueError as error:
        raise ValueError(f"status.allocatable: {error}") from None


def _reserved(pool: Pool | None) -> Amounts:
    if pool is None:
        return NOTHING
    return Amounts.parse({one.resource: getattr(pool.spec.system_reserved, one.spec_field) or 0 for one in DIMENSIONS})


def _gpu_type(pool: Pool | None, labels: Mapping[str, str]) -> str:
    """The pool's name for it, else GPU feature discovery's product without the mark of sharing."""
    return pool.spec.gpu_type if pool else labels.get(LABEL_PRODUCT, "").removesuffix("-SHARED")


def _domains(pool: Pool | None, labels: Mapping[str, str]) -> tuple[str, ...]:
    """Up to the first label that the node lacks: of a rack without its block nobody knows which one it is."""
    keys = pool.spec.topology if pool is not None else ()
    return tuple(takewhile(bool, (labels.get(key, "") for key in keys)))


def _bandwidths(pool: Pool | None, labels: Mapping[str, str]) -> tuple[float, ...]:
    """Of the links within the node's domains; none where the pool tells none."""
    if pool is None or not pool.spec.topology_bandwidth:
        return ()
    keys = pool.spec.topology[: len(_domains(pool, labels))]
    return tuple(float(pool.spec.topology_bandwidth.get(key, 0)) for key in keys)


def _replicas(pool: Pool | None, labels: Mapping[str, str]) -> int:
    """What the node is labelled with, as it is written by who offers its devices; else what the pool says."""
    told = _number(labels, LABEL_REPLICAS)
    return told or (pool.spec.sharing.replicas if pool is not None else 1)


def _strategy(pool: Pool | None, labels: Mapping[str, str]) -> str:
    """How its GPUs are shared, as the node is labelled; else as the pool says."""
    said = "none" if pool is None else pool.spec.sharing.mode.lower()
    return labels.get(LABEL_SHARING, said)


def _number(labels: Mapping[str, str], label: str) -> int:
    """A label's number, within reason; 0 where there is none."""
    value = labels.get(label, "")
    return min(int(value), _MOST_NUMBER) if value.isdecimal() else 0


def _problem(
    name: str, labels: Mapping[str, str], claims: Sequence[Pool], reserved_too_large: bool
) -> PoolProblem | None:
    names = tuple(pool.name for pool in claims)
    if len(claims) > 1:
        return PoolProblem(say(Reason.AMBIGUOUS_POOL, pools=", ".join(names), used=names[0]), names)
    if not _gpu_type(claims[0] if claims else None, labels):
        return PoolProblem(say(Reason.NODE_OF_UNKNOWN_TYPE, node=name, label=LABEL_PRODUCT))
    if reserved_too_large:
        return PoolProblem(say(Reason.RESERVED_TOO_LARGE, node=name), names)
    return _other_sharing(name, labels, claims[0]) if claims else None


def _other_sharing(name: str, labels: Mapping[str, str], pool: Pool) -> PoolProblem | None:
    sharing = pool.spec.sharing
    strategy, replicas = labels.get(LABEL_SHARING), labels.get(LABEL_REPLICAS, "0")
    field, said, label, value = "replicas", str(sharing.replicas), LABEL_REPLICAS, replicas
    if strategy is not None and (strategy == _MPS) != (sharing.mode == "MPS"):
        field, said, label, value = "mode", sharing.mode, LABEL_SHARING, strategy
    elif replicas in ("0", said):
        return None
    return PoolProblem(
        say(Reason.SHARING_MISMATCH, field=field, said=said, node=name, label=label, value=value), (pool.name,)
    )
