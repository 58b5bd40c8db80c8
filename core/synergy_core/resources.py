"""Resources beside GPUs as a vector: the one place that knows their names.

A vector has an entry per DIMENSIONS, integers in the unit that the field's name gives. Everything that packs resources
works on vectors; a further dimension (storage bandwidth, network) is a further name here and fields of that name in
Node, NodeShare and Job.
"""

from dataclasses import replace
from operator import attrgetter, gt

from synergy_core.model import Job, Node, NodeShare

Vector = tuple[int, ...]

DIMENSIONS = ("cpu_millis", "memory_bytes")


_HELD = attrgetter(*DIMENSIONS)
_MINIMUM = attrgetter(*(f"{name}_min" for name in DIMENSIONS))
_MAXIMUM = attrgetter(*(f"{name}_max" for name in DIMENSIONS))


def left_on(node: Node) -> Vector:
    """What pods of others leave on the node."""
    return tuple(max(0, getattr(node, name) - getattr(node, f"{name}_used")) for name in DIMENSIONS)


def whole(node: Node) -> Vector:
    """All that the node has."""
    return tuple(getattr(node, name) for name in DIMENSIONS)


def minimum(job: Job) -> Vector:
    """The least that the whole job asks for."""
    least: Vector = _MINIMUM(job)
    return least


def maximum(job: Job) -> tuple[int | None, ...]:
    """The most that the whole job may get; None where there is no bound."""
    most: tuple[int | None, ...] = _MAXIMUM(job)
    return most


def held_in(share: NodeShare) -> Vector:
    """What a share holds beside its GPUs."""
    held: Vector = _HELD(share)
    return held


def node_share(node: str, gpus: int, amounts: Vector) -> NodeShare:
    """The share that gives `gpus` and `amounts` of the node."""
    return NodeShare(node=node, gpus=gpus, **dict(zip(DIMENSIONS, amounts, strict=True)))


def with_more_used(node: Node, share: NodeShare) -> Node:
    """The node with a share more held by others."""
    used = {f"{name}_used": getattr(node, f"{name}_used") + getattr(share, name) for name in DIMENSIONS}
    return replace(node, gpus_used=node.gpus_used + share.gpus, **used)


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
