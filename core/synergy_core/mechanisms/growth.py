"""Allocates what is left over after packing to jobs below their demand.

The paper's packing may leave CPU and memory idle beside jobs that were switched to their proportional share. Here the
next step of a job's matrix goes to the job that it helps most, as long as a step fits. The measure is the gain in
speed, relative to the proportional share, over the fraction of the pool's resources that the step takes.
"""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from synergy_core.mechanisms.packing.statement import Packing
from synergy_core.model.pool import shares_of
from synergy_core.model.resources import Vector, larger, smaller, split_up, times, within
from synergy_core.selection.queue_entry import QueueEntry

_Step = tuple[float, str, QueueEntry, Vector]


def grow(packing: Packing, limits: Mapping[QueueEntry, Vector]) -> None:
    """Grow jobs step by step, the most useful step first, each job up to its limit per GPU."""
    steps = [step for entry, limit in limits.items() if (step := _next_step(packing, entry, limit)) is not None]
    heapify(steps)
    while steps:
        _, _, entry, target = heappop(steps)
        given = _affordable(packing, entry, target)
        if given != packing.assigned[entry].per_gpu and _is_faster(packing, entry, given):
            packing.resize(entry, shares_of(packing.assigned[entry].assignments, given))
            if given == target:
                step = _next_step(packing, entry, limits[entry])
                if step is not None:
                    heappush(steps, step)


def _next_step(packing: Packing, entry: QueueEntry, limit: Vector) -> _Step | None:
    """The next point of the job's matrix with its rank: the negative gain for its cost."""
    speed = entry.on(packing.pool).speed
    now = packing.assigned[entry].per_gpu
    if speed is None or within(limit, now):
        return None
    gpus = entry.gpus
    ceiling = larger(limit, now)
    amounts = speed.next_faster(times(now, gpus), times(ceiling, gpus))
    if amounts is None:
        return None
    target = smaller(split_up(amounts, gpus), ceiling)
    gain = speed.at(times(target, gpus)) - speed.at(times(now, gpus))
    usual = entry.on(packing.pool).proportional_steps_per_s() or 1.0
    cost = sum((t - n) * gpus * w for t, n, w in zip(target, now, packing.pool.weight.tolist(), strict=True))
    return (-gain / usual / cost, entry.name, entry, target)


def _affordable(packing: Packing, entry: QueueEntry, target: Vector) -> Vector:
    """As much of the way to the target as the job's nodes and quotas have left."""
    assigned = packing.assigned[entry]
    now = assigned.per_gpu
    spare = smaller(
        *(tuple(free // gpus for free in packing.free[node].tolist()) for node, gpus in assigned.assignments)
    )
    if entry.job.quotas:
        allowed = packing.quotas.spare(entry, packing.pool, assigned.shares)
        spare = (*(min(s, a // entry.gpus) for s, a in zip(spare[:2], allowed, strict=True)), *spare[2:])
    return tuple(n + max(0, min(t - n, s)) for n, t, s in zip(now, target, spare, strict=True))


def _is_faster(packing: Packing, entry: QueueEntry, per_gpu: Vector) -> bool:
    terms = entry.on(packing.pool)
    return terms.steps_per_s(per_gpu) > terms.steps_per_s(packing.assigned[entry].per_gpu)
