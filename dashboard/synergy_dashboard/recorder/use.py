"""Existing, assigned and requested GPUs of each type at a moment. Pure."""

from collections.abc import Iterable, Sequence

from synergy_api.cluster.pool import read_pools
from synergy_api.cluster.pools import node_capacities
from synergy_dashboard.facts import UseSample
from synergy_dashboard.store.bundle import Object
from synergy_view.seen import SeenJob
from synergy_view.top import top

USE_S = 30.0
"""The history has one sample in each interval of this many seconds."""


def use_at(
    jobs: Sequence[SeenJob], nodes: Iterable[Object], pools: Iterable[Object], now: float
) -> tuple[UseSample, ...]:
    """The use by GPU type. Its time is the beginning of the interval, so a restarted recorder adds no second sample."""
    usable, _ = read_pools(pools)
    waiting = [job for job in jobs if not job.finished and not job.gpus_held]
    return tuple(
        UseSample(
            at_s=now // USE_S * USE_S,
            gpu_type=row.gpu_type,
            gpus=row.gpus,
            gpus_given=row.gpus_given,
            gpus_wanted=row.gpus_wanted,
            waiting=sum(not job.spec.gpu_types or row.gpu_type in job.spec.gpu_types for job in waiting),
        )
        for row in top(jobs, node_capacities(nodes, usable), now).types
    )


def trim_node(item: Object) -> Object:
    """The parts of a node that its capacity needs, without its images, which are the largest part."""
    metadata, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    return {
        "metadata": {name: metadata[name] for name in ("name", "labels", "uid", "resourceVersion") if name in metadata},
        "spec": {name: spec[name] for name in ("taints", "unschedulable") if name in spec},
        "status": {name: status[name] for name in ("allocatable", "conditions") if name in status},
    }
