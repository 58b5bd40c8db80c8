"""What a job may be given, as points: its own grid pruned to the Pareto front (Synergy, section 4.1)."""

from dataclasses import dataclass

from synergy_core.model.pool import Pool
from synergy_core.model.resources import Vector, larger, smaller, split_up, within
from synergy_core.selection.queue_entry import QueueEntry


@dataclass(frozen=True, slots=True)
class ParetoPoint:
    """Amounts beside each GPU, and the speed with them relative to a reference speed of the job."""

    per_gpu: Vector
    worth: float


def pareto_front(entry: QueueEntry, pool: Pool, least: Vector, *, fair: float, reference: float) -> list[ParetoPoint]:
    """The points that are not slower than `fair` and that no other point beats in every way; never empty.

    Points of the matrix, cut to what a node can give and the job's bounds, and `least`: what the job can have in any
    case (equation 5 of the integer programme is that the others are not slower than `fair`). `fair` and `reference` are
    in steps per second; worth is speed / reference. A job whose speed is not known has `least` alone, with worth 1.
    """
    terms = entry.on(pool)
    if terms.speed is None or terms.fixed is not None:
        return [ParetoPoint(least, 1.0)]
    ceiling = larger(entry.info.capped(pool.most_per_gpu(entry.gpus)), least)
    floor = larger(entry.info.low, (1,) * len(least))
    found = {least, ceiling}
    for point in terms.speed.points():
        known = zip(split_up(point, entry.gpus), terms.speed.measured, least, strict=True)
        amounts = tuple(amount if measured else own for amount, measured, own in known)
        found.add(larger(smaller(amounts, ceiling), floor))
    worth = {amounts: terms.steps_per_s(amounts) / (reference or 1.0) for amounts in found}
    enough = [amounts for amounts in found if terms.steps_per_s(amounts) >= fair or amounts == least]
    front: list[Vector] = []
    for amounts in sorted(enough, key=lambda one: (-worth[one], one)):
        front = [other for other in front if not (worth[other] <= worth[amounts] and within(amounts, other))]
        if not any(within(other, amounts) for other in front):
            front.append(amounts)
    return [ParetoPoint(amounts, worth[amounts]) for amounts in sorted(front)]
