"""A job as the planner knows it: what follows from the job itself and from the nodes, whatever a plan decides.

The cache keeps it from plan to plan (`synergy_core.cache`), so nothing in it ever changes. What one plan decides about
the job is in that plan's `QueueEntry`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from synergy_core.model.placement import NodeAssignments, NodeCounts, Rooms
from synergy_core.model.pool import Pool, Reservation
from synergy_core.model.resources import Vector, held_in, larger, split_down, times
from synergy_core.model.snapshot import Job
from synergy_core.throughput.class_on_pool import ClassOnPool
from synergy_core.throughput.estimates import NO_SPEEDS
from synergy_core.throughput.job_class import JobClass
from synergy_core.throughput.job_classes import JobClasses
from synergy_core.throughput.levels import Tier, tiers
from synergy_core.throughput.skew import NO_RULES, PackRules, kept_when_spread, placement_of


@dataclass(frozen=True, slots=True)
class Held:
    """Where a running job is, and what it holds there."""

    pool: Pool
    reservation: Reservation
    assignments: NodeAssignments


class JobInfo:
    """A job on the nodes of a cluster.

    `classes` is shared by the jobs of a plan: what is computed for one job serves all others of its class. `speeds` are
    steps per second at the GPU-proportional share, by GPU type, on types without a sensitivity matrix.
    """

    def __init__(
        self,
        job: Job,
        pools: Sequence[Pool],
        tolerance: float,
        classes: JobClasses | None = None,
        *,
        rules: PackRules = NO_RULES,
        speeds: Mapping[str, float] = NO_SPEEDS,
    ) -> None:
        self.job: Final = job
        self.name: Final = job.name
        self.lasting: Final = object()
        """The same object in all infos of the job between which it differs in passing fields only."""
        self.gpus: Final = job.gpus
        self.running: Final = job.running
        self.held: Final = _held(job, pools) if job.running is not None else None
        self.speeds: Final = speeds
        self.job_class: Final[JobClass] = (classes or JobClasses(pools[0].further if pools else (), tolerance)).of(
            job, speeds
        )
        self.on: Final[Callable[[Pool], ClassOnPool]] = self.job_class.on
        """What the job may have on a pool."""
        self.is_profile_run: Final = self.job_class.bounds.is_profile_run
        """The job runs to be measured."""
        self.keeps_its_gpus: Final = self.is_profile_run or not job.preemptible
        """It may not be preempted once it runs, even where pods of others have taken the room."""
        self.placement: Final = placement_of(
            job, rules, lambda: self.job_class.best_speed(pools), lambda: self._most_nodes(pools)
        )
        """How its GPUs are placed where the policy does not say."""
        self._link_bytes_per_s: Final = rules.link_bytes_per_s
        self._counts: Final[dict[str, NodeCounts]] = {}
        self._tiers: Final[dict[str, tuple[Tier, ...]]] = {}
        self._counts_gpus_only: bool | None = None

    def __repr__(self) -> str:
        return f"JobInfo({self.name})"

    def later(self, job: Job) -> "JobInfo":
        """The same of the job at another moment: it differs in passing fields only (`snapshot.passing`)."""
        made = object.__new__(JobInfo)
        made.__dict__.update(self.__dict__, job=job, running=job.running)
        return made

    @property
    def low(self) -> Vector:
        """Least of each resource per GPU."""
        return self.job_class.bounds.low

    @property
    def high(self) -> tuple[int | None, ...]:
        """Most of each resource per GPU."""
        return self.job_class.bounds.high

    @cached_property
    def reservation_in_place(self) -> Reservation:
        """The reservation of a running job on its own nodes; a profile run keeps exactly what it has."""
        held = self.held
        if held is None:
            return ()
        return held.reservation if self.is_profile_run else self.on(held.pool).reservation(held.assignments)

    @cached_property
    def nodes_are_there(self) -> bool:
        """Whether all nodes on which it runs are there still."""
        held, running = self.held, self.running
        return held is not None and running is not None and len(held.reservation) == len(running.workers)

    @cached_property
    def nodes_can_be_used(self) -> bool:
        held = self.held
        if held is None or not self.nodes_are_there or not self.may_use(held.pool):
            return False
        return all(held.pool.usable[node] for node, _ in held.assignments)

    @cached_property
    def cut_down(self) -> Reservation:
        """The least of what it holds that is as fast as its proportional share; all where that is not certain."""
        held = self.held
        if held is None:
            return ()
        whole = self.nodes_are_there and all(held.pool.usable[node] for node, _ in held.assignments)
        per_gpu = {split_down(amounts, gpus) for _, gpus, amounts in held.reservation}
        if self.is_profile_run or not whole or len(per_gpu) != 1:
            return held.reservation
        least = self.on(held.pool).least_of(per_gpu.pop(), [node for node, _ in held.assignments])
        return tuple([(node, gpus, times(least, gpus)) for node, gpus, _ in held.reservation])

    @cached_property
    def reservation_as_held(self) -> Reservation:
        """What a running job keeps where no job leaves: its reservation, and never less than it is cut down to."""
        held = self.held
        if held is None or self.is_profile_run:
            return self.cut_down
        reserved = self.on(held.pool).reservation(held.assignments)
        return tuple(
            (node, gpus, larger(amounts, least))
            for (node, gpus, amounts), (_, _, least) in zip(self.cut_down, reserved, strict=True)
        )

    def counts_gpus_only(self, pools: Sequence[Pool]) -> bool:
        """Whether any GPUs of uniform `pools` will do, with exactly their share, and it holds nothing else there."""
        if self._counts_gpus_only is None:
            job = self.job
            anywhere = job.nodes is None and self.placement in ("auto", "spread")
            free = job.purpose == "train" and job.preemptible and not job.quotas
            exact = all(self.on(pool).is_share for pool in pools if self.may_use(pool))
            self._counts_gpus_only = anywhere and free and exact and self._holds_its_share()
        return self._counts_gpus_only

    def _holds_its_share(self) -> bool:
        """What it holds, if anything, is what the proportional share would be planned as."""
        running, held = self.running, self.held
        if running is None:
            return True
        if held is None or not self.nodes_can_be_used or held.reservation != self.reservation_in_place:
            return False
        speed = self.on(held.pool).proportional_steps_per_s()
        alone = not (running.partners or running.estimated or running.spread)
        return alone and running.steps_per_s == running.proportional_steps_per_s == speed

    def types_in_order(self, pools: Sequence[Pool], given: tuple[str, ...] | None) -> Sequence[str]:
        """The GPU types that it may use, as `fastest_first` has them; `given` are those of the policy."""
        if given is None:
            return self.job_class.fastest_types(pools)
        there = {pool.gpu_type for pool in pools if self.may_use(pool)}
        return [gpu_type for gpu_type in given if gpu_type in there]

    def may_use(self, pool: Pool) -> bool:
        """Whether the pool's GPU type is one of those it allows."""
        return self.job_class.may_use(pool)

    def _most_nodes(self, pools: Sequence[Pool]) -> int:
        """Nodes that it could land on at the worst: one for each GPU, where there are so many that it may use."""
        allowed = self.job.nodes
        there = (
            len(pool.nodes) if allowed is None else sum(name in pool.index for name in allowed)
            for pool in pools
            if self.may_use(pool)
        )
        return max(1, min(self.gpus, max(there, default=1)))

    def open_nodes(self, pool: Pool) -> NDArray[np.bool_]:
        """Which of the pool's nodes it may be placed on."""
        if self.job.nodes is None:
            return pool.open
        both: NDArray[np.bool_] = pool.named(self.job.nodes) & pool.open
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

    def lies_spread(self, assignments: NodeAssignments, pool: Pool) -> bool:
        """Whether these are more nodes than the fewest that could hold it, were all of the pool's nodes empty; where
        the distance of nodes matters to it, whether they are beyond its first tier."""
        fewest, known = pool.counts.fewest(self.gpus), self.tiers(pool)
        return not known[0].has(assignments, pool, fewest) if known else len(assignments) > fewest

    def tiers(self, pool: Pool) -> tuple[Tier, ...]:
        """How near its nodes may be, and what it keeps of its speed there, the nearest first. None where the pool has
        no domains, or its speed is the same everywhere."""
        if self.gpus == 1 or self.is_profile_run or self.job.placement != "auto" or not pool.domains:
            return ()
        known = self._tiers.get(pool.gpu_type)
        if known is None:
            speed = self.on(pool).proportional_steps_per_s()
            known = tiers(self.job, pool, speed, self._link_bytes_per_s)
            self._tiers[pool.gpu_type] = known
        return known if len(known) > 1 else ()

    def speed_parts(self, pools: Iterable[Pool]) -> Mapping[str, tuple[float, float]]:
        """By GPU type, the parts of its speed that it keeps on the fewest nodes that could hold it, and spread.

        (1, 0) on types that are missing. The second part is 0 where the job cannot be spread, or cannot be placed
        otherwise; then the first is its speed.
        """
        if self.gpus == 1 or self.is_profile_run or self.job.placement not in ("auto", "spread"):
            return {}
        found = {}
        for pool in (pool for pool in pools if self.may_use(pool)):
            known = self.tiers(pool)
            if known and self.fewest_nodes(pool) == pool.counts.fewest(self.gpus):
                found[pool.gpu_type] = (1.0, known[-1].kept)
                continue
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
        return self.job_class.bounds.capped(per_gpu)


def _held(job: Job, pools: Iterable[Pool]) -> Held | None:
    if job.running is None:
        return None
    for pool in pools:
        if pool.gpu_type == job.running.gpu_type:
            on_known = [share for share in job.running.workers if share.node in pool.index]
            reservation = tuple(sorted([(pool.index[s.node], s.gpus, held_in(s, pool.further)) for s in on_known]))
            return Held(pool, reservation, tuple([(node, gpus) for node, gpus, _ in reservation]))
    return None
