"""A job while it is planned: what it holds, what it is promised, what it wishes for on each GPU type.

All amounts are per GPU and integers, so that a job that is split over nodes has exactly the same CPU and memory beside
each of its GPUs (Synergy, section 4.2), and never more in total than was counted.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synergy_core.model import Job, Placement
from synergy_core.placement import Seats
from synergy_core.pool import Booking, Pool
from synergy_core.resources import (
    Further,
    Vector,
    held_in,
    larger,
    maximum,
    minimum,
    smaller,
    split_down,
    split_up,
    times,
    within,
)
from synergy_core.speed import Speed


@dataclass(frozen=True, slots=True)
class Held:
    """Where a running job is, and what it holds there."""

    pool: Pool
    booking: Booking
    seats: Seats


@dataclass(slots=True)
class Kind:
    """What jobs with the same GPUs, purpose, bounds and matrices have in common."""

    low: Vector
    high: tuple[int | None, ...]
    terms: "dict[str, Terms]"
    best_speed: float | None = None
    """Speed at the proportional share on the GPU type where it is fastest."""


class Kinds:
    """The kinds of jobs that one plan has met; `further` are the cluster's further resources (`resources`)."""

    def __init__(self, further: Further = ()) -> None:
        self.further = further
        self._known: dict[Hashable, Kind] = {}

    def of(self, job: Job) -> Kind:
        """The job's kind. Matrices are the same if they are one object."""
        low, high = minimum(job, self.further), maximum(job, self.further)
        key = (job.gpus, low, high, job.purpose, job.gpu_types, id(job.profiles))
        kind = self._known.get(key)
        if kind is None:
            most = tuple(None if bound is None else max(1, bound // job.gpus) for bound in high)
            kind = self._known[key] = Kind(_capped(split_up(low, job.gpus), most), most, {})
        return kind


class Contender:
    """A job in line; `rank` is its place there, 0 the first.

    `kinds` is shared by the contenders of one plan: what is worked out for a job serves all others of its kind.
    """

    __slots__ = (
        "_cut_down",
        "_kind",
        "gpus",
        "held",
        "high",
        "job",
        "low",
        "name",
        "rank",
        "stays_to_its_end",
        "tolerance",
        "types",
    )

    def __init__(self, job: Job, pools: Sequence[Pool], tolerance: float, kinds: Kinds | None = None) -> None:
        self.job = job
        self.name = job.name
        self.gpus = job.gpus
        self.rank = -1
        self.stays_to_its_end = False
        """Whether the policy preempts nobody."""
        self.types: tuple[str, ...] | None = None
        """GPU types that the policy gives it this round, the first choice first; None: those it is fastest on."""
        self.tolerance = tolerance
        self.held = _held(job, pools) if job.running is not None else None
        self._cut_down: Booking | None = None
        self._kind = (kinds or Kinds(pools[0].further if pools else ())).of(job)
        self.high = self._kind.high
        """Most of each resource per GPU."""
        self.low = self._kind.low
        """Least of each resource per GPU."""

    def __repr__(self) -> str:
        return f"Contender({self.name})"

    @property
    def booking_in_place(self) -> Booking:
        """The promise of a running job on its own nodes; a profile run keeps exactly what it has."""
        held = self.held
        if held is None:
            return ()
        return held.booking if self.is_profile_run else self.on(held.pool).booking(held.seats)

    @property
    def nodes_are_there(self) -> bool:
        """Whether all nodes on which it runs are there still."""
        held, running = self.held, self.job.running
        return held is not None and running is not None and len(held.booking) == len(running.workers)

    @property
    def place_is_there(self) -> bool:
        """Whether all nodes on which it runs are there, can be used, and have a GPU type that it may have."""
        held = self.held
        if held is None or not self.nodes_are_there:
            return False
        if self.types is not None and held.pool.gpu_type not in self.types:
            return False
        return self.may_use(held.pool) and all(held.pool.usable[node] for node, _ in held.seats)

    @property
    def is_profile_run(self) -> bool:
        """Whether it is run to be measured."""
        return self.job.purpose == "profile"

    @property
    def keeps_its_gpus(self) -> bool:
        """Whether it may not be preempted once it runs."""
        return self.stays_to_its_end or self.is_profile_run or not self.job.preemptible

    def cut_down(self) -> Booking:
        """The least of what it holds that is as fast as its proportional share; all where that is not certain."""
        if self._cut_down is None:
            self._cut_down = self._find_cut_down()
        return self._cut_down

    def _find_cut_down(self) -> Booking:
        held, running = self.held, self.job.running
        if held is None or running is None:
            return ()
        whole = len(held.booking) == len(running.workers) and all(held.pool.usable[node] for node, _ in held.seats)
        per_gpu = {split_down(amounts, gpus) for _, gpus, amounts in held.booking}
        if self.is_profile_run or not whole or len(per_gpu) != 1:
            return held.booking
        least = self.on(held.pool).least_of(per_gpu.pop(), [node for node, _ in held.seats])
        return tuple([(node, gpus, times(least, gpus)) for node, gpus, _ in held.booking])

    def may_use(self, pool: Pool) -> bool:
        """Whether the pool's GPU type is one of those it allows."""
        return not self.job.gpu_types or pool.gpu_type in self.job.gpu_types

    def place(self, pool: Pool) -> Placement:
        """How its GPUs are to lie: a profile run is measured on one node where one is large enough."""
        if self.is_profile_run and self.gpus <= max(pool.gpus):
            return "consolidate"
        return self.job.placement

    def capped(self, per_gpu: Vector) -> Vector:
        """`per_gpu` within the job's upper bounds."""
        return _capped(per_gpu, self.high)

    def bounded(self, per_gpu: NDArray[np.int64]) -> NDArray[np.int64]:
        """Amounts per GPU of each node (nodes x dimensions) within the job's bounds."""
        high = [np.iinfo(np.int64).max if most is None else most for most in self.high]
        return np.maximum(np.minimum(per_gpu, high), np.maximum(1, self.low))

    def on(self, pool: Pool) -> "Terms":
        """What the job may have on this pool."""
        terms = self._kind.terms.get(pool.gpu_type)
        if terms is None:
            terms = self._kind.terms[pool.gpu_type] = Terms(self, pool)
        return terms

    def best_speed(self, pools: Iterable[Pool]) -> float:
        """Speed at the proportional share on the GPU type where it is fastest; 0 where it is not known."""
        if self._kind.best_speed is None:
            speeds = [self.on(pool).proportional_steps_per_s() for pool in pools if self.may_use(pool)]
            self._kind.best_speed = max(speeds, default=0.0)
        return self._kind.best_speed


def _capped(per_gpu: Vector, high: tuple[int | None, ...]) -> Vector:
    if not any(high):
        return per_gpu
    return tuple(e if most is None else min(e, most) for e, most in zip(per_gpu, high, strict=True))


def fastest_first(contender: Contender, pools: Iterable[Pool]) -> list[Pool]:
    """The pools it may use, the one where it is fastest at its share first; where that is not known, by name.

    Where the policy gives types, those in its order instead.
    """
    allowed = [pool for pool in pools if contender.may_use(pool)]
    if contender.types is not None:
        given = {gpu_type: place for place, gpu_type in enumerate(contender.types)}
        return sorted((pool for pool in allowed if pool.gpu_type in given), key=lambda pool: given[pool.gpu_type])
    if len(allowed) > 1:
        allowed.sort(key=lambda pool: (-contender.on(pool).proportional_steps_per_s(), pool.gpu_type))
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


class Terms:
    """A contender on one pool, and all others of its kind."""

    __slots__ = (
        "_bookings",
        "_contender",
        "_floors",
        "_lean",
        "_least",
        "_pool",
        "_profile",
        "_promises",
        "_proportional",
        "_speed",
        "_speeds",
        "_wish",
        "fixed",
        "hard",
    )

    def __init__(self, contender: Contender, pool: Pool) -> None:
        self._contender = contender
        self._pool = pool
        self._profile = contender.job.profiles.get(pool.gpu_type)
        self._speed: Speed | None = None
        self._speeds: dict[Vector, float] = {}
        self._promises: dict[int, Vector] = {}
        self._bookings: dict[Seats, Booking] = {}
        self._least: dict[tuple[Vector, Vector], Vector] = {}
        self._proportional: dict[Vector, Vector] = {}
        self._floors: dict[Vector, Vector] = {}
        self.fixed = self._fixed_demand() if contender.is_profile_run else None
        self.hard = self.fixed is not None or not within(contender.low, pool.least_share)
        """Whether it must have more than its GPUs' share somewhere, so that it cannot take just any free GPUs."""
        self._wish: Vector | None = None
        self._lean: Vector | None = None

    def _fixed_demand(self) -> Vector:
        """A profile run's demand; cut to what a node can give it, where no share of a node is asked the share."""
        asked = tuple(low or share for low, share in zip(self._contender.low, self._pool.best_share, strict=True))
        return larger(smaller(asked, self._pool.most_per_gpu(self._contender.gpus)), (1,) * len(asked))

    @property
    def speed(self) -> Speed | None:
        """The job's speed on this pool's GPUs; None where there is no matrix for them."""
        if self._speed is None and self._profile is not None:
            self._speed = Speed(self._profile, self._pool.further)
        return self._speed

    def proportional_steps_per_s(self, share: Vector | None = None) -> float:
        """Speed at the GPU-proportional share (by default of the pool's best nodes); 0 where it is not known."""
        return self.steps_per_s(self._pool.best_share if share is None else share)

    def steps_per_s(self, per_gpu: Vector) -> float:
        """Speed with `per_gpu` beside each GPU; 0 where it is not known."""
        known = self._speeds.get(per_gpu)
        if known is None:
            known = 0.0 if self.speed is None else self.speed.at(times(per_gpu, self._contender.gpus))
            self._speeds[per_gpu] = known
        return known

    def serves(self, per_gpu: Vector, share: Vector) -> bool:
        """Whether the job is as fast with `per_gpu` as with `share`; where its speed is not known, has as much."""
        if self.speed is None:
            return within(share, per_gpu)
        return self.steps_per_s(per_gpu) >= self.steps_per_s(share) and within(self._contender.low, per_gpu)

    def promise(self, node: int) -> Vector:
        """What is reserved per GPU on a node: the node's share, more where the job's minimum is above it."""
        promise = self._promises.get(node)
        if promise is None:
            promise = self._promises[node] = self.fixed or larger(self._pool.share[node], self._contender.low)
        return promise

    def booking(self, seats: Seats) -> Booking:
        """The promise for these nodes."""
        booking = self._bookings.get(seats)
        if booking is None:
            booking = tuple((node, gpus, times(self.promise(node), gpus)) for node, gpus in seats)
            self._bookings[seats] = booking
        return booking

    def proportional(self, nodes: Iterable[int]) -> Vector:
        """The GPU-proportional share on these nodes, within the job's bounds: the same beside each GPU."""
        return self.proportional_to(self._pool.share_on(nodes))

    def proportional_to(self, share: Vector) -> Vector:
        """A node's share within the job's bounds."""
        proportional = self._proportional.get(share)
        if proportional is None:
            proportional = self.fixed or larger(self._contender.capped(share), self._contender.low)
            self._proportional[share] = proportional
        return proportional

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
        lean = larger(smaller(self.lean, share), self._contender.low)
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
        gpus = self._contender.gpus
        least = split_up(self.speed.smallest(usual, times(both if within_both else held, gpus)), gpus)
        return smaller(larger(least, self._contender.low), held)

    @property
    def lean(self) -> Vector:
        """The least per GPU that is as fast as the proportional share of the pool's best nodes."""
        if self._lean is None:
            self._lean = self._least_as_fast_as_share()
        return self._lean

    def _least_as_fast_as_share(self) -> Vector:
        share = self._contender.capped(self._pool.best_share)
        if self.speed is None or self.fixed is not None:
            return self.fixed or share
        gpus = self._contender.gpus
        return split_up(self.speed.smallest(self.steps_per_s(share), times(share, gpus)), gpus)

    @property
    def wish(self) -> Vector:
        """The job's demand vector per GPU (Synergy, section 3.2), within its bounds and what a node has.

        Never slower than the proportional share, which the tolerance of the demand vector alone would allow. A job
        without a matrix wishes for its share; one whose matrix lacks a further resource, for its share of that.
        """
        if self._wish is None:
            self._wish = self.fixed or self._demand()
        return self._wish

    def _demand(self) -> Vector:
        contender, gpus = self._contender, self._contender.gpus
        share = contender.capped(self._pool.best_share)
        if self.speed is None:
            return larger(share, contender.low)
        most = larger(contender.capped(self._pool.most_per_gpu(gpus)), share)
        known = zip(most, share, self.speed.measured, strict=True)
        ceiling = times(tuple(m if measured else s for m, s, measured in known), gpus)
        target = max(self.speed.at(ceiling) * (1.0 - contender.tolerance), self.steps_per_s(share))
        return larger(split_up(self.speed.smallest(target, ceiling), gpus), contender.low, (1,) * len(share))
