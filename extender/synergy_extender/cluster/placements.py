"""Throughputs by number of nodes, as they are measured while a job runs here and there. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType
from typing import Final

from synergy_api.cluster.pools import NodeCapacity
from synergy_api.parts.allocation import Allocation
from synergy_api.parts.progress import PlacementSpeed

MOST = 16
"""Placements that are kept."""
REMEMBERED = 100
"""Reports that a mean is of: once there are more, each new one weighs a hundredth, and the oldest fade."""
ENOUGH = 5
"""Reports of a placement before anybody goes by it: one interval's speed says little against a limit of 5 %."""
LEAST_SPEED, MOST_SPEED = 1e-6, 1e6
"""Relative speeds beyond these make no sense: whoever reports them measured nothing."""

Sizes = Mapping[str, Sequence[int]]
"""GPUs of each node, by GPU type."""
Domains = Mapping[str, tuple[str, ...]]
"""What nodes are part of, the widest first, by name of the node."""
NO_DOMAINS: Final[Domains] = MappingProxyType({})


def placements_after(
    before: Sequence[PlacementSpeed],
    allocation: Allocation | None,
    run: int,
    steps_per_s: float,
    domains: Domains = NO_DOMAINS,
) -> list[PlacementSpeed]:
    """The measured placements once the present one has reported: of each the mean of its reports.

    Speeds are relative to what the plan expects of the present CPU and memory. Placements thus differ only in the
    workers' nodes. Nothing is measured if the plan expects no speed, if it expects an estimated one, or while it has
    others on the GPU. Of more placements than are kept, the oldest is dropped. `domains` are those of all nodes.
    """
    if allocation is None or allocation.run != run or not allocation.workers or not allocation.steps_per_second:
        return list(before)
    if allocation.estimated:
        return list(before)
    if allocation.shared_gpu is not None and (allocation.shared_gpu.asked or allocation.shared_gpu.seen):
        return list(before)
    speed = steps_per_s / allocation.steps_per_second
    if not LEAST_SPEED <= speed <= MOST_SPEED:
        return list(before)
    nodes = {share.node for share in allocation.workers}
    where = (allocation.gpu_type, len(nodes), shared_domains(nodes, domains))
    reports, mean = 0, 0.0
    others = []
    for one in before:
        if (one.gpu_type, one.nodes, one.shared_domains) == where:
            reports, mean = min(one.reports, REMEMBERED - 1), one.relative_speed
        else:
            others.append(one)
    mean += (speed - mean) / (reports + 1)
    now = PlacementSpeed(
        gpu_type=where[0], nodes=where[1], shared_domains=where[2], relative_speed=mean, reports=reports + 1
    )
    return [*others, now][-MOST:]


def domains_of(capacities: Iterable[NodeCapacity]) -> Domains:
    """What each of the cluster's nodes is part of, where their pools name a topology."""
    return {capacity.name: capacity.domains for capacity in capacities if capacity.domains}


def shared_domains(nodes: Iterable[str], domains: Domains) -> int | None:
    """How many domains these nodes share; None for a single one, and where nobody names domains."""
    names = [domains.get(node, ()) for node in nodes]
    if len(names) < 2 or not any(names):
        return None
    return sum(1 for _ in takewhile(lambda level: len(set(level)) == 1, zip(*names, strict=False)))


def level_speeds(placements: Iterable[PlacementSpeed], gpus: int, sizes: Sizes) -> dict[str, dict[str, float]]:
    """Speed of a job of `gpus` on nodes that share so many domains, as part of that where it is nearest: on one node,
    else on the fewest nodes that share the most domains. By GPU type and number of domains.

    Types where the nearest is not measured well enough are not there. Of a level it is the speed on the most nodes.
    """
    known = [one for one in placements if one.reports >= ENOUGH]
    found: dict[str, dict[str, float]] = {}
    for gpu_type in sorted({one.gpu_type for one in known if one.shared_domains is not None}):
        fewest = _fewest_nodes(gpus, sizes.get(gpu_type, ()))
        own = [one for one in known if one.gpu_type == gpu_type]
        nearest = min(own, key=_distance)
        if nearest.nodes > fewest:
            continue
        by_level = sorted((one for one in own if one.shared_domains is not None), key=lambda one: one.nodes)
        levels = {str(one.shared_domains): one.relative_speed / nearest.relative_speed for one in by_level}
        found[gpu_type] = {level: min(max(speed, LEAST_SPEED), MOST_SPEED) for level, speed in levels.items()}
    return found


def sizes_of(capacities: Iterable[NodeCapacity]) -> Sizes:
    """The sizes of the cluster's nodes."""
    sizes: dict[str, list[int]] = {}
    for capacity in capacities:
        sizes.setdefault(capacity.gpu_type, []).append(capacity.gpus)
    return sizes


def spread_speeds(placements: Iterable[PlacementSpeed], gpus: int, sizes: Sizes) -> dict[str, float]:
    """Speed of a job of `gpus` on the most nodes as part of that on the fewest that could hold it, by GPU type.

    Types where either is not measured well enough are not there: what a job has on three nodes and on four says
    nothing of what it would have on one. The fewest are those of the whole cluster; a job that its template keeps off
    the large nodes comes to no measured speed.
    """
    known = [one for one in placements if one.reports >= ENOUGH]
    found = {}
    for gpu_type in sorted({one.gpu_type for one in known}):
        fewest = _fewest_nodes(gpus, sizes.get(gpu_type, ()))
        own = sorted((one for one in known if one.gpu_type == gpu_type), key=_distance)
        if own[0].nodes <= fewest and own[-1].nodes > own[0].nodes:
            found[gpu_type] = own[-1].relative_speed / own[0].relative_speed
    return found


def _distance(one: PlacementSpeed) -> tuple[int, int]:
    """How far apart its nodes are: the more nodes, then the fewer domains that they share."""
    return one.nodes, -(one.shared_domains or 0)


def spread_speed(placements: Iterable[PlacementSpeed], gpus: int, sizes: Sizes) -> float | None:
    """The same on the worst GPU type; None where none is measured."""
    return min(spread_speeds(placements, gpus, sizes).values(), default=None)


def _fewest_nodes(gpus: int, sizes: Sequence[int]) -> int:
    """Nodes that a job needs at least; 1, the least that there can be, where they could not hold it."""
    room = 0
    for count, size in enumerate(sorted(sizes, reverse=True), start=1):
        room += size
        if room >= gpus:
            return count
    return 1
