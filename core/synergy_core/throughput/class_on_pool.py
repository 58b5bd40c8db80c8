"""What jobs of one class may have beside their GPUs on the nodes of one pool."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synergy_core.model.placement import NodeAssignments
from synergy_core.model.pool import Pool, Reservation
from synergy_core.model.resources import Vector, larger, node_share, smaller, split_up, times, within
from synergy_core.model.snapshot import NodeShare
from synergy_core.throughput.class_bounds import ClassBounds
from synergy_core.throughput.speed import Speed

_ANY = 2**63 - 1
"""No bound."""
_OF_THE_MATRIX: Final = ("speed", "best_steps_per_s")
"""Attributes that follow from the matrix alone, on whatever nodes."""


class ClassOnPool:
    """The jobs of one class on one pool."""

    def __init__(self, bounds: ClassBounds, pool: Pool, before: "ClassOnPool | None" = None) -> None:
        """`before` is the same on a pool of the same GPU type and further resources, whose nodes have changed."""
        self._bounds = bounds
        self._pool = pool
        self._profile = bounds.profiles.get(pool.gpu_type)
        self._without_matrix = bounds.speeds.get(pool.gpu_type, 0.0)
        self._speeds: dict[Vector, float] = {}
        self._reserved: dict[int, Vector] = {}
        self._reservations: dict[NodeAssignments, Reservation] = {}
        self._least: dict[tuple[Vector, Vector], Vector] = {}
        self._proportional: dict[Vector, Vector] = {}
        self._floors: dict[Vector, Vector] = {}
        self._shares: dict[str, NDArray[np.int64]] = {}
        self._workers: dict[NodeAssignments, tuple[NodeShare, ...]] = {}
        self.fixed = self._fixed_demand() if bounds.is_profile_run else None
        self.hard = self.fixed is not None or not within(bounds.low, pool.least_share)
        """Whether it needs more than its GPUs' share on some node. Then it cannot take just any free GPUs."""

        if before is not None and self.fixed is None:
            self._take_over(before)

    def _take_over(self, before: "ClassOnPool") -> None:
        """What is the same on these nodes."""
        pool, other = self._pool, before._pool
        self._speeds, self._least, self._proportional = before._speeds, before._least, before._proportional
        names = list(_OF_THE_MATRIX)
        if pool.best_share == other.best_share:
            self._floors = before._floors
            gpus = self._bounds.gpus
            names += ["lean", "demand"] if pool.most_per_gpu(gpus) == other.most_per_gpu(gpus) else ["lean"]
        self.__dict__.update({name: before.__dict__[name] for name in names if name in before.__dict__})

    def _fixed_demand(self) -> Vector:
        """A profile run's demand; cut to what a node can give. Without a minimum it is the share."""
        asked = tuple(low or share for low, share in zip(self._bounds.low, self._pool.best_share, strict=True))
        return larger(smaller(asked, self._pool.most_per_gpu(self._bounds.gpus)), (1,) * len(asked))

    @cached_property
    def speed(self) -> Speed | None:
        """The job's speed on this pool's GPUs; None where there is no matrix for them."""
        return None if self._profile is None else Speed(self._profile, self._pool.further)

    def proportional_steps_per_s(self, share: Vector | None = None) -> float:
        """Speed at the GPU-proportional share (by default of the pool's best nodes); 0 where it is not known."""
        return self.steps_per_s(self._pool.best_share if share is None else share)

    def steps_per_s(self, per_gpu: Vector) -> float:
        """Speed with `per_gpu` beside each GPU, without a matrix as at the share; 0 where it is not known."""
        known = self._speeds.get(per_gpu)
        if known is None:
            known = self._without_matrix if self.speed is None else self.speed.at(times(per_gpu, self._bounds.gpus))
            self._speeds[per_gpu] = known
        return known

    @cached_property
    def best_steps_per_s(self) -> float:
        """Speed with all that the job can use, without a matrix as at the share; 0 where it is not known."""
        return self._without_matrix if self.speed is None else self.speed.best

    def with_threads(self, per_gpu: Vector, part: float) -> float:
        """Speed with `per_gpu` beside each GPU where the GPUs' threads are enough for this part of the best speed: the
        job is held up by whichever is slower."""
        return min(self.steps_per_s(per_gpu), part * self.best_steps_per_s)

    def serves(self, per_gpu: Vector, share: Vector) -> bool:
        """Whether the job is as fast with `per_gpu` as with `share`; where its speed is not known, has as much."""
        if self.speed is None:
            return within(share, per_gpu)
        return self.steps_per_s(per_gpu) >= self.steps_per_s(share) and within(self._bounds.low, per_gpu)

    def reserved_per_gpu(self, node: int) -> Vector:
        """What is reserved per GPU on a node: the node's share, more where the job's minimum is above it."""
        reserved = self._reserved.get(node)
        if reserved is None:
            reserved = self._reserved[node] = self.fixed or larger(self._pool.share[node], self._bounds.low)
        return reserved

    def reservation(self, assignments: NodeAssignments) -> Reservation:
        """The reservation on these nodes."""
        reservation = self._reservations.get(assignments)
        if reservation is None:
            reservation = tuple((node, gpus, times(self.reserved_per_gpu(node), gpus)) for node, gpus in assignments)
            self._reservations[assignments] = reservation
        return reservation

    def workers(self, assignments: NodeAssignments) -> tuple[NodeShare, ...]:
        """The shares of these nodes that the reservation is."""
        if assignments not in self._workers:
            nodes, further, reserved = self._pool.nodes, self._pool.further, self.reservation(assignments)
            shares = (node_share(nodes[node].name, gpus, amounts, further) for node, gpus, amounts in reserved)
            self._workers[assignments] = tuple(shares)
        return self._workers[assignments]

    @cached_property
    def is_share(self) -> bool:
        """Its GPUs' share of the best nodes is what it gets and what is reserved, neither more nor less."""
        share, low = self._pool.best_share, self._bounds.low
        return not self.hard and larger(self._bounds.capped(share), low) == share == larger(share, low)

    def proportional(self, nodes: Iterable[int]) -> Vector:
        """The GPU-proportional share on these nodes, within the job's bounds: the same beside each GPU."""
        return self.proportional_to(self._pool.share_on(nodes))

    def proportional_to(self, share: Vector) -> Vector:
        """A node's share within the job's bounds."""
        proportional = self._proportional.get(share)
        if proportional is None:
            proportional = self.fixed or larger(self._bounds.capped(share), self._bounds.low)
            self._proportional[share] = proportional
        return proportional

    @property
    def shares(self) -> NDArray[np.int64]:
        """The share of each node (nodes x dimensions, one row where all are alike) within the job's bounds."""
        return self._bounded("whole", lambda: self._pool.shares)

    @property
    def lean_shares(self) -> NDArray[np.int64]:
        """The same, without what the job surely cannot use."""
        return self._bounded("lean", lambda: np.minimum(self._pool.shares, self.lean))

    def _bounded(self, name: str, per_gpu: Callable[[], NDArray[np.int64]]) -> NDArray[np.int64]:
        known = self._shares.get(name)
        if known is None:
            high = [_ANY if most is None else most for most in self._bounds.high]
            known = np.maximum(np.minimum(per_gpu(), high), np.maximum(1, self._bounds.low))
            if len(known) == 1:  # a row for each node of a large pool would be much to keep
                self._shares[name] = known
        return known

    def floor(self, nodes: Iterable[int]) -> Vector:
        """The least that is as fast as the proportional share on these nodes.

        What the job cannot use of a share is left to others: a job whose speed does not depend on memory gives up the
        memory of its share, and is as fast as before.
        """
        return self.floor_of_share(self._pool.share_on(nodes))

    def floor_of_share(self, share: Vector) -> Vector:
        """The least that is as fast as this share of a node."""
        floor = self._floors.get(share)
        if floor is None:
            floor = self._floors[share] = self._floor_of(self.proportional_to(share))
        return floor

    def _floor_of(self, share: Vector) -> Vector:
        if self.speed is None or self.fixed is not None:
            return share
        lean = larger(smaller(self.lean, share), self._bounds.low)
        return lean if self.steps_per_s(lean) >= self.steps_per_s(share) else share

    def least_of(self, held: Vector, nodes: Sequence[int]) -> Vector:
        """The least within `held` (per GPU) that is as fast as the proportional share; `held` where that is slower."""
        share = self.proportional(nodes)
        least = self._least.get((held, share))
        if least is None:
            least = self._least[held, share] = self._find_least_of(held, share)
        return least

    def _find_least_of(self, held: Vector, share: Vector) -> Vector:
        both = smaller(held, share)
        if self.speed is None:
            return both
        usual = self.steps_per_s(share)
        within_both = self.steps_per_s(both) >= usual
        gpus = self._bounds.gpus
        least = split_up(self.speed.smallest(usual, times(both if within_both else held, gpus)), gpus)
        return smaller(larger(least, self._bounds.low), held)

    @cached_property
    def lean(self) -> Vector:
        """The least per GPU that is as fast as the proportional share of the pool's best nodes."""
        share = self._bounds.capped(self._pool.best_share)
        if self.speed is None or self.fixed is not None:
            return self.fixed or share
        gpus = self._bounds.gpus
        return split_up(self.speed.smallest(self.steps_per_s(share), times(share, gpus)), gpus)

    @cached_property
    def demand(self) -> Vector:
        """The job's demand vector per GPU (Synergy, section 3.2), within its bounds and what a node has.

        Never slower than the proportional share, which the tolerance of the demand vector alone would allow. A job
        without a matrix demands its share; one whose matrix lacks a further resource demands its share of that.
        """
        if self.fixed is not None:
            return self.fixed
        bounds, gpus = self._bounds, self._bounds.gpus
        share = bounds.capped(self._pool.best_share)
        if self.speed is None:
            return larger(share, bounds.low)
        most = larger(bounds.capped(self._pool.most_per_gpu(gpus)), share)
        known = zip(most, share, self.speed.measured, strict=True)
        ceiling = times(tuple(m if measured else s for m, s, measured in known), gpus)
        target = max(self.speed.at(ceiling) * (1.0 - bounds.tolerance), self.steps_per_s(share))
        return larger(split_up(self.speed.smallest(target, ceiling), gpus), bounds.low, (1,) * len(share))
