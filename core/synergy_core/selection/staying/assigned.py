"""What a mechanism gives a job on its nodes."""

from dataclasses import dataclass

from synergy_core.model.placement import NodeAssignments
from synergy_core.model.pool import Reservation
from synergy_core.model.resources import Vector, smaller, split_down


@dataclass(frozen=True, slots=True)
class Assigned:
    """Where a job is: what it has on each node, and the least that it can be cut down to there."""

    shares: Reservation
    least: Reservation

    @property
    def assignments(self) -> NodeAssignments:
        return tuple([(node, gpus) for node, gpus, _ in self.shares])

    @property
    def nodes(self) -> tuple[int, ...]:
        return tuple([node for node, _, _ in self.shares])

    @property
    def per_gpu(self) -> Vector:
        """What is beside each GPU: the same on every node of a place that a mechanism made, else the least."""
        shares = self.shares
        if len(shares) == 1:
            _, gpus, amounts = shares[0]
            return split_down(amounts, gpus)
        return smaller(*[split_down(amounts, gpus) for _, gpus, amounts in shares])
