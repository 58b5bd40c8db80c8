"""A job while it is planned: its place in line, what it holds, and what jobs of its kind may have."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from synergy_core.model.placement import NodeAssignments, NodeCounts, Rooms
from synergy_core.model.pool import Booking, Pool
from synergy_core.model.resources import Vector, held_in, larger, split_down, times
from synergy_core.model.snapshot import Job, Placement
from synergy_core.throughput.estimates import NO_SPEEDS
from synergy_core.throughput.job_class import ClassOnPool, JobClass, JobClasses
from synergy_core.throughput.skew import NO_RULES, PackRules, kept_when_spread, placement_of


@dataclass(frozen=True, slots=True)
class Held:
    """Where a running job is, and what it holds there."""

    pool: Pool
    booking: Booking
    seats: NodeAssignments


class QueueEntry:
    """A job in line; `rank` is its place there, 0 the first.

    `kinds` is shared by the queue entries of a plan: what is worked out for a job serves all others of its kind.
    """

    def __init__(
        self,
        job: Job,
        pools: Sequence[Pool],
        tolerance: float,
        kinds: JobClasses | None = None,
        *,
        rules: PackRules = NO_RULES,
        speeds: Mapping[str, float] = NO_SPEEDS,
    ) -> None:
        self.job = job
        self.name = job.name
        self.gpus = job.gpus
        self.rank = -1
        self.stays_for_now = False
        """Whether nobody may have its place in this plan: the policy preempts nobody, or its run is too young."""
        self.goes_first = False
        """Whether it was promoted for having waited too long, and nodes are to be kept for it (`kept_free`)."""
        self.least_run_s = 0.0
        """Seconds for which nobody may have its place once it has started."""
        self.kept_off: Mapping[str, frozenset[int]] = {}
        """Nodes by GPU type, as indices, that are kept for others in this plan: it must not start there."""
        self.pods_matter = False
        """Whether its quotas count how many pods it has in this plan, so that it cannot take just any free GPUs."""
        self.wants_shared: frozenset[str] | None = None
        """GPU types on which it rather has nodes whose GPUs are shared, on the others those where they are not; None
        where it does not matter."""
        self.goes_by_price = False
        """Whether the policy rather leaves a GPU idle than gives the job one of another type."""
        self.types: tuple[str, ...] | None = None
        """GPU types that the policy gives it this round, the first choice first; None: those it is fastest on."""
        self.lies: Mapping[str, Placement] = {}
        """By GPU type, how the policy wants its GPUs to lie this round; on others as `placement` says."""
        self.running = job.running
        self.held = _held(job, pools) if job.running is not None else None
        self.speeds = speeds
        """On GPU types without a matrix."""
        self.kind: JobClass = (kinds or JobClasses(pools[0].further if pools else (), tolerance)).of(job, speeds)
        self.on: Callable[[Pool], ClassOnPool] = self.kind.on
        """What the job may have on a pool."""
        self.is_profile_run = self.kind.is_profile_run
        """Whether it is run to be measured."""
        self.placement = placement_of(job, rules, lambda: self.kind.best_speed(pools), lambda: self._most_nodes(pools))
        """How its GPUs are to lie."""
        self._link_bytes_per_s = rules.link_bytes_per_s
        self._counts: dict[str, NodeCounts] = {}

    def __repr__(self) -> str:
        return f"QueueEntry({self.name})"

    @property
    def low(self) -> Vector:
        """Least of each resource per GPU."""
        return self.kind.low

    @property
    def high(self) -> tuple[int | None, ...]:
        """Most of each resource per GPU."""
        return self.kind.high

    @cached_property
    def booking_in_place(self) -> Booking:
        """The promise of a running job on its own nodes; a profile run keeps exactly what it has."""
        held = self.held
        if held is None:
            return ()
        return held.booking if self.is_profile_run else self.on(held.pool).booking(held.seats)

    @cached_property
    def nodes_are_there(self) -> bool:
        """Whether all nodes on which it runs are there still."""
        held, running = self.held, self.running
        return held is not None and running is not None and len(held.booking) == len(running.workers)

    @property
    def place_is_there(self) -> bool:
        """Whether all nodes on which it runs are there, can be used, and have a GPU type that it may have."""
        held = self.held
        if self.types is not None and held is not None and held.pool.gpu_type not in self.types:
            return False
        if held is not None and self.lies.get(held.pool.gpu_type) == "pack":
            return self._nodes_can_be_used and len(held.seats) <= self.fewest_nodes(held.pool)
        return self._nodes_can_be_used

    @cached_property
    def _nodes_can_be_used(self) -> bool:
        held = self.held
        if held is None or not self.nodes_are_there or not self.may_use(held.pool):
            return False
        return all(held.pool.usable[node] for node, _ in held.seats)

    @property
    def keeps_its_gpus(self) -> bool:
        """Whether it may not be preempted once it runs, even where pods of others have taken the room."""
        return self.is_profile_run or not self.job.preemptible

    @property
    def may_be_displaced(self) -> bool:
        """Whether a job ahead of it may have its place."""
        return not (self.stays_for_now or self.keeps_its_gpus)

    @cached_property
    def cut_down(self) -> Booking:
        """The least of what it holds that is as fast as its proportional share; all where that is not certain."""
        held = self.held
        if held is None:
            return ()
        whole = self.nodes_are_there and all(held.pool.usable[node] for node, _ in held.seats)
        per_gpu = {split_down(amounts, gpus) for _, gpus, amounts in held.booking}
        if self.is_profile_run or not whole or len(per_gpu) != 1:
            return held.booking
        least = self.on(held.pool).least_of(per_gpu.pop(), [node for node, _ in held.seats])
        return tuple([(node, gpus, times(least, gpus)) for node, gpus, _ in held.booking])

    @cached_property
    def booking_as_held(self) -> Booking:
        """What a running job can count on where nobody leaves: its promise, and never less than it is cut down to."""
        held = self.held
        if held is None or self.is_profile_run:
            return self.cut_down
        promised = self.on(held.pool).booking(held.seats)
        return tuple(
            (node, gpus, larger(amounts, promise))
            for (node, gpus, amounts), (_, _, promise) in zip(self.cut_down, promised, strict=True)
        )

    def may_use(self, pool: Pool) -> bool:
        """Whether the pool's GPU type is one of those it allows."""
        return self.kind.may_use(pool)

    def _most_nodes(self, pools: Sequence[Pool]) -> int:
        """Nodes that it could land on at the worst: one for each GPU, where there are so many that it may use."""
        allowed = self.job.nodes
        there = (
            len(pool.nodes) if allowed is None else sum(name in pool.index for name in allowed)
            for pool in pools
            if self.may_use(pool)
        )
        return max(1, min(self.gpus, max(there, default=1)))

    def place(self, pool: Pool) -> Placement:
        """How its GPUs are to lie: a profile run is measured on one node where one is large enough."""
        if self.is_profile_run and self.gpus <= max(pool.gpus):
            return "consolidate"
        wanted = self.wanted(pool)
        if wanted == "pack" and self.fewest_nodes(pool) == 1:
            return "consolidate"
        return wanted

    def wanted(self, pool: Pool) -> Placement:
        """How the policy wants its GPUs to lie, else it itself."""
        return self.lies.get(pool.gpu_type, self.placement)

    def open_nodes(self, pool: Pool) -> NDArray[np.bool_]:
        """Which of the pool's nodes it may be placed on."""
        if self.job.nodes is None:
            return pool.open
        allowed = np.zeros(len(pool.nodes), dtype=bool)
        allowed[[pool.index[name] for name in self.job.nodes if name in pool.index]] = True
        both: NDArray[np.bool_] = allowed & pool.open
        return both

    def open_gpus(self, pool: Pool) -> Rooms:
        """GPUs of each node that it may be placed on, whoever holds them."""
        return np.where(self.open_nodes(pool), pool.gpus, 0)

    def fewest_nodes(self, pool: Pool) -> int:
        """The smallest number of the pool's nodes that could hold it, beside the pods that are not ours."""
        return self._open_counts(pool).fewest(self.gpus)

    def _open_counts(self, pool: Pool) -> NodeCounts:
        if self.job.nodes is None:
            return pool.open_counts
        if pool.gpu_type not in self._counts:
            self._counts[pool.gpu_type] = NodeCounts(self.open_gpus(pool))
        return self._counts[pool.gpu_type]

    def lies_spread(self, seats: NodeAssignments, pool: Pool) -> bool:
        """Whether these are more nodes than the fewest that could hold it, were all of the pool's nodes empty."""
        return len(seats) > pool.counts.fewest(self.gpus)

    def speed_parts(self, pools: Iterable[Pool]) -> Mapping[str, tuple[float, float]]:
        """By GPU type, what it has of its speed on the fewest nodes that could hold it, and spread; (1, 0) elsewhere.

        The second part is 0 where it does not lie spread, or cannot lie otherwise: then the first says how fast it is.
        """
        if self.gpus == 1 or self.is_profile_run or self.job.placement not in ("auto", "spread"):
            return {}
        found = {}
        for pool in (pool for pool in pools if self.may_use(pool)):
            fewest, most = pool.counts.fewest(self.gpus), min(self.gpus, self._open_counts(pool).most)
            if fewest < most:
                speed = self.on(pool).proportional_steps_per_s()
                kept = kept_when_spread(self.job, pool.gpu_type, self._link_bytes_per_s, speed, (fewest, most))
                one_way = self.job.placement == "spread" or self.fewest_nodes(pool) > fewest
                if kept != 1.0:
                    found[pool.gpu_type] = (kept, 0.0) if one_way else (1.0, kept)
        return found

    def capped(self, per_gpu: Vector) -> Vector:
        """`per_gpu` within the job's upper bounds."""
        return self.kind.capped(per_gpu)


def fastest_first(entry: QueueEntry, pools: Iterable[Pool]) -> list[Pool]:
    """The pools it may use, the one where it is fastest at its share first; where that is not known, by name.

    Where the policy gives types, those in its order instead.
    """
    allowed = [pool for pool in pools if entry.may_use(pool)]
    if entry.types is not None:
        given = {gpu_type: place for place, gpu_type in enumerate(entry.types)}
        return sorted((pool for pool in allowed if pool.gpu_type in given), key=lambda pool: given[pool.gpu_type])
    if len(allowed) > 1:
        allowed.sort(key=lambda pool: (-entry.on(pool).proportional_steps_per_s(), pool.gpu_type))
    return allowed


def _held(job: Job, pools: Iterable[Pool]) -> Held | None:
    if job.running is None:
        return None
    for pool in pools:
        if pool.gpu_type == job.running.gpu_type:
            on_known = [share for share in job.running.workers if share.node in pool.index]
            booking = tuple(sorted([(pool.index[s.node], s.gpus, held_in(s, pool.further)) for s in on_known]))
            return Held(pool, booking, tuple([(node, gpus) for node, gpus, _ in booking]))
    return None
