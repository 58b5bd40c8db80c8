"""Amounts of Kubernetes as dimensions of the planner, and back: the one place that knows which is which.

A snapshot has CPU and memory as fields of their own. Every further dimension is an entry of `further`.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from synergy_api.amounts import DIMENSIONS, Amounts
from synergy_api.quantity import LARGEST
from synergy_core.model import snapshot as core
from synergy_core.model.resources import BASE

T = TypeVar("T")
Bounds = Mapping[str, tuple[int, int | None]]
"""By dimension, the least and the most that a whole job can have; None: no bound."""


def node_fields(capacity: Amounts, used: Amounts) -> dict[str, Any]:
    """Fields of a core.Node: what the node has, and what pods of others hold."""
    held = {name: min(max(0, amount), LARGEST) for name, amount in used.fields.items()}
    own = {name: amount for name, amount in capacity.fields.items() if name in BASE}
    own |= {f"{name}_used": amount for name, amount in held.items() if name in BASE}
    return {**own, "further": _further(capacity.fields), "further_used": _further(held)}


def job_fields(bounds: Bounds) -> dict[str, Any]:
    """Fields of a core.Job."""
    own: dict[str, Any] = {f"{name}_min": low for name, (low, _) in bounds.items() if name in BASE}
    own |= {f"{name}_max": high for name, (_, high) in bounds.items() if name in BASE}
    further = _further(bounds)
    least = {name: low for name, (low, _) in further.items()}
    most = {name: high for name, (_, high) in further.items() if high is not None}
    return {**own, "further_min": least, "further_max": most}


def bounds_of(job: core.Job) -> tuple[tuple[int, int | None], ...]:
    """The bounds of a planner's job, by dimension."""
    return tuple(
        (getattr(job, f"{name}_min"), getattr(job, f"{name}_max"))
        if name in BASE
        else (job.further_min.get(name, 0), job.further_max.get(name))
        for name in _NAMES
    )


def least_of(job: core.Job, gpus: int) -> Amounts:
    """The least that a planner's job asks for, with these GPUs."""
    return Amounts(gpus, *(low for low, _ in bounds_of(job)))


def share_fields(amounts: Amounts) -> dict[str, Any]:
    """Fields of a core.NodeShare."""
    own = {name: amount for name, amount in amounts.fields.items() if name in BASE}
    return {**own, "further": _further(amounts.fields)}


def amounts_of_place(share: core.NodeShare) -> Amounts:
    """What a plan gives a job on one node."""
    own = {name: getattr(share, name) if name in BASE else share.further.get(name, 0) for name in _NAMES}
    return Amounts(share.gpus, **own)


def _further(amounts: Mapping[str, T]) -> dict[str, T]:
    return {name: amount for name, amount in amounts.items() if name not in BASE}


_NAMES = tuple(one.field for one in DIMENSIONS)
