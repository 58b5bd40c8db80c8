"""Throughputs by number of nodes, as they are measured while a job runs here and there. Pure."""

from collections.abc import Sequence

from synergy_api.training_job import Allocation, PlacementSpeed

MOST = 16


def placements_after(
    before: Sequence[PlacementSpeed], allocation: Allocation | None, run: int, steps_per_s: float
) -> list[PlacementSpeed]:
    """The measured placements once the present one has reported; the newest report of each counts.

    Speeds are taken relative to what the plan expects of the present CPU and memory, so that placements differ in
    where the workers lie alone. A job that has lain in more ways than are kept forgets the oldest.
    """
    if allocation is None or allocation.run != run or not allocation.workers or steps_per_s <= 0.0:
        return list(before)
    expected = allocation.steps_per_second or 1.0
    nodes = len({share.node for share in allocation.workers})
    now = PlacementSpeed(gpu_type=allocation.gpu_type, nodes=nodes, relative_speed=steps_per_s / expected)
    others = [one for one in before if (one.gpu_type, one.nodes) != (now.gpu_type, now.nodes)]
    return [*others, now][-MOST:]


def spread_speed(placements: Sequence[PlacementSpeed]) -> float | None:
    """Speed on the most nodes as part of that on the fewest, on the worst GPU type; None where it is not measured."""
    found = []
    for gpu_type in {one.gpu_type for one in placements}:
        own = sorted((one.nodes, one.relative_speed) for one in placements if one.gpu_type == gpu_type)
        if len(own) > 1:
            found.append(own[-1][1] / own[0][1])
    return min(found, default=None)
