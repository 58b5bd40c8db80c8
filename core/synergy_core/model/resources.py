"""Resources beside GPUs as a vector: the one place that knows their names.

A vector has CPU (milli-CPU), memory (bytes) and then one entry for each further resource that the cluster's nodes name
(storage bandwidth, network), in the order of `further`, the sorted names. All are integers. Everything that packs
resources works on vectors, however long.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import gt

from synergy_core.model.snapshot import Job, Node, NodeShare

Vector = tuple[int, ...]
Further = tuple[str, ...]
"""Names of the further resources, sorted."""

BASE = ("cpu_millis", "memory_bytes")


def further_of(nodes: Iterable[Node]) -> Further:
    """The further resources of a cluster; all its nodes name the same ones."""
    return tuple(sorted({name for node in nodes for name in node.further}))


def left_on(node: Node, further: Further) -> Vector:
    """What pods of others leave on the node."""
    used = (node.cpu_millis_used, node.memory_bytes_used, *_of(node.further_used, further))
    return tuple(max(0, all_ - taken) for all_, taken in zip(whole(node, further), used, strict=True))


def whole(node: Node, further: Further) -> Vector:
    """All that the node has."""
    return (node.cpu_millis, node.memory_bytes, *_of(node.further, further))


def minimum(job: Job, further: Further) -> Vector:
    """The least that the whole job asks for."""
    return (job.cpu_millis_min, job.memory_bytes_min, *_of(job.further_min, further))


def maximum(job: Job, further: Further) -> tuple[int | None, ...]:
    """The most that the whole job may get; None where there is no bound."""
    return (job.cpu_millis_max, job.memory_bytes_max, *(job.further_max.get(name) for name in further))


def held_in(share: NodeShare, further: Further) -> Vector:
    """What a share holds beside its GPUs."""
    return (share.cpu_millis, share.memory_bytes, *_of(share.further, further))


def node_share(node: str, gpus: int, amounts: Vector, further: Further) -> NodeShare:
    """The share that gives `gpus` and `amounts` of the node."""
    cpu_millis, memory_bytes, *rest = amounts
    named = dict(zip(further, rest, strict=True))
    return NodeShare(node=node, gpus=gpus, cpu_millis=cpu_millis, memory_bytes=memory_bytes, further=named)


def with_more_used(node: Node, share: NodeShare) -> Node:
    """The node with a share more held by others."""
    return replace(
        node,
        gpus_used=node.gpus_used + share.gpus,
        cpu_millis_used=node.cpu_millis_used + share.cpu_millis,
        memory_bytes_used=node.memory_bytes_used + share.memory_bytes,
        further_used={name: node.further_used.get(name, 0) + share.further.get(name, 0) for name in node.further},
    )


def with_all_used_but(node: Node, shares: Iterable[NodeShare]) -> Node:
    """The node with all that these shares do not hold counted as held by others."""
    kept = list(shares)
    return replace(
        node,
        gpus_used=max(node.gpus_used, node.gpus - sum(one.gpus for one in kept)),
        cpu_millis_used=max(node.cpu_millis_used, node.cpu_millis - sum(one.cpu_millis for one in kept)),
        memory_bytes_used=max(node.memory_bytes_used, node.memory_bytes - sum(one.memory_bytes for one in kept)),
        further_used={
            name: max(node.further_used.get(name, 0), all_ - sum(one.further.get(name, 0) for one in kept))
            for name, all_ in node.further.items()
        },
    )


def _of(amounts: Mapping[str, int], names: Sequence[str]) -> Vector:
    return tuple(amounts.get(name, 0) for name in names) if names else ()


def times(vector: Vector, factor: int) -> Vector:
    """Each entry multiplied."""
    return vector if factor == 1 else tuple([entry * factor for entry in vector])


def split_up(vector: Vector, parts: int) -> Vector:
    """Each entry divided, rounded up: the parts together are at least the whole."""
    return vector if parts == 1 else tuple([-(-entry // parts) for entry in vector])


def split_down(vector: Vector, parts: int) -> Vector:
    """Each entry divided, rounded down: the parts together are at most the whole."""
    return vector if parts == 1 else tuple([entry // parts for entry in vector])


def smaller(*vectors: Vector) -> Vector:
    """The smallest entry of each dimension."""
    return tuple(map(min, *vectors)) if len(vectors) > 1 else vectors[0]


def larger(*vectors: Vector) -> Vector:
    """The largest entry of each dimension."""
    return tuple(map(max, *vectors)) if len(vectors) > 1 else vectors[0]


def within(a: Vector, b: Vector) -> bool:
    """Whether `a` is at most `b` in each dimension."""
    return not any(map(gt, a, b))
