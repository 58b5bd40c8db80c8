"""Gives jobs their whole demand vectors or nothing: what `greedy`, `drf` and `tetris` have in common.

* A running job has its place kept until its turn comes. Whether a job ahead of it may take that place is up to the
  mechanism (`displaces`); jobs that may not be preempted and profile runs never lose theirs, even where pods of others
  have taken the rest of their node.
* A newcomer goes to the first nodes that fit, by name. One that is larger than a server is split over the fewest
  servers, never for more CPU or memory.
* A demand that not even the empty cluster could meet (pods of others hold too much, servers differ) is switched to the
  GPU-proportional share, so that no job waits for ever.
"""

from collections.abc import Iterator

import numpy as np

from synergy_core.mechanisms.mechanism import Outcome, Round
from synergy_core.mechanisms.statement import Packing, shares_of
from synergy_core.model.placement import Rooms, nodes_needed
from synergy_core.model.pool import Booking, Pool, Reservations
from synergy_core.model.reasons import NEVER, Reason
from synergy_core.model.resources import Vector, smaller, split_down
from synergy_core.model.snapshot import Placement, QuotaDraw
from synergy_core.selection.diagnosis import AS_PLACED, choose_for, never
from synergy_core.selection.job_info import Held
from synergy_core.selection.queue_entry import QueueEntry, fastest_first
from synergy_core.selection.quotas import QuotaLedger, Use, fewest_pods
from synergy_core.selection.rounds import PoolSelection
from synergy_core.throughput.job_class import JobClass


class FixedDemands:
    """A round in the making. Each job of the line is to be given to `stays`, and if that is False to `admit`."""

    def __init__(self, round_: Round, *, displaces: bool) -> None:
        self._round = round_
        self._displaces = displaces
        self._decided = {pool.gpu_type: Reservations(pool) for pool in round_.pools}
        """What those have who are seated."""
        self._all = {pool.gpu_type: Reservations(pool) for pool in round_.pools}
        """That, and the places that are kept for running jobs whose turn has not come."""
        self._empty = {pool.gpu_type: Reservations(pool) for pool in round_.pools}
        self._quotas = QuotaLedger(round_.quotas)
        """What is taken of the quotas: by those who are seated and by the places that are kept."""
        self._kept: dict[QueueEntry, Booking] = {}
        """Places that are kept, in the order of the line, those of jobs that cannot lose them first."""
        self._seated: dict[str, dict[QueueEntry, Booking]] = {pool.gpu_type: {} for pool in round_.pools}
        self._waiting: list[tuple[QueueEntry, Reason]] = []
        self._demands: dict[tuple[_Like, str], Vector | None] = {}
        self._refused: dict[_Like, Reason | None] = {}
        """Newcomers of one GPU who found no place since somebody lost one, and why such as they never will."""
        self._profile_gpus_held = 0
        self._blocked = False
        """Whether a job that nobody may pass does not fit yet."""
        self._fewest_gpus = 0 if round_.explain else round_.line.fewest_gpus
        self._keep_places()

    def line(self) -> Iterator[QueueEntry]:
        """Everyone in line, as far as somebody might still get something; the running jobs behind that point stay."""
        for entry in self._round.line:
            if self.is_over():
                break
            yield entry
        self.let_stay()

    def newcomers(self) -> Iterator[QueueEntry]:
        """Everyone in line who is not seated."""
        return (entry for entry in self._round.line if not self.has_seat(entry))

    def let_stay(self) -> list[QueueEntry]:
        """Seat all running jobs for whom a place is kept; those, in the order of the line."""
        staying = sorted(self._kept, key=lambda entry: entry.rank)
        for entry in staying:
            self.stays(entry)
        return staying

    def is_over(self) -> bool:
        """Whether nobody asks why the others wait, and none of them could get anything any more."""
        if self._round.explain:
            return False
        ledgers = (self._decided if self._displaces else self._all).values()
        return all(ledger.unheld < self._fewest_gpus for ledger in ledgers)

    def outcome(self) -> Outcome:
        """What was decided."""
        self._spread_those_who_wait()
        packings = []
        for pool in self._round.pools:
            packing = Packing(PoolSelection(self._decided[pool.gpu_type]))
            for entry, booking in self._seated[pool.gpu_type].items():
                packing.seat(entry, booking, booking)
            packings.append(packing)
        return Outcome(packings, self._waiting, self._quotas.full)

    def reservations(self, pool: Pool) -> Reservations:
        """What is held on the pool's nodes, the places of running jobs included."""
        return self._all[pool.gpu_type]

    def has_seat(self, entry: QueueEntry) -> bool:
        """Whether it runs."""
        return any(entry in seated for seated in self._seated.values())

    def demand(self, entry: QueueEntry, pool: Pool) -> Vector | None:
        """The job's demand per GPU on the pool; None where only its proportional share can be met there."""
        key = (_like(entry), pool.gpu_type)
        if key not in self._demands:
            wish = entry.on(pool).wish
            met = self._choose(entry, self._empty[pool.gpu_type], wish) is not None
            self._demands[key] = wish if met else None
        return self._demands[key]

    # Running jobs

    def _keep_places(self) -> None:
        running = [entry for entry in self._round.line.running if entry.held is not None]
        for entry in running:  # before one grows to its demand: the others stay with what they hold at least
            if entry.held is not None and entry.keeps_its_gpus and entry.info.nodes_are_there:
                self._keep(entry, entry.held.booking)
        for entry in sorted(running, key=lambda one: (not one.keeps_its_gpus, not self._keeps_what_it_has(one))):
            if entry in self._kept:
                self._give_up(entry)
            booking = self._in_place(entry)
            if booking is not None:
                self._keep(entry, booking)
        self._profile_gpus_held = sum(entry.gpus for entry in self._kept if entry.is_profile_run)

    def _keeps_what_it_has(self, entry: QueueEntry) -> bool:
        """Whether a running job goes on with just what it holds; else it is to have its demand."""
        if self._round.mode == "fill" or entry.is_profile_run:
            return True
        return not self._displaces and self._serves(entry)

    def _in_place(self, entry: QueueEntry) -> Booking | None:
        """What a running job is to have on its own nodes; None where it cannot stay."""
        held = entry.held
        if held is None or self._round.mode == "fill":
            return None if held is None else held.booking
        if entry.place_is_there:
            wanted = self._wanted_in_place(entry, held)
            if self._all[held.pool.gpu_type].fits(wanted):
                return wanted if self._stays_within_quotas(entry, held, wanted) else held.booking
        return held.booking if entry.keeps_its_gpus and entry.info.nodes_are_there else None

    def _stays_within_quotas(self, entry: QueueEntry, held: Held, wanted: Booking) -> bool:
        """Whether a running job may have this in its place: what its quotas have room for, or no more than it has."""
        if not entry.job.quotas:
            return True
        have = dict(self._round.quotas.of_booking(entry, held.pool, held.booking))
        use = self._round.quotas.of_booking(entry, held.pool, wanted)
        return self._quotas.fits(tuple(entry for entry in use if entry[1] > have.get(entry[0], 0)))

    def _wanted_in_place(self, entry: QueueEntry, held: Held) -> Booking:
        if self._keeps_what_it_has(entry):
            return held.booking
        demand = self.demand(entry, held.pool)
        if demand is None:
            demand = entry.on(held.pool).proportional(node for node, _ in held.seats)
        return shares_of(held.seats, demand)

    @staticmethod
    def _serves(entry: QueueEntry) -> bool:
        """Whether a job has the same beside each GPU, and is as fast with it as at its share."""
        held = entry.held
        if held is None or not held.booking:
            return False
        per_gpu = smaller(*(split_down(amounts, gpus) for _, gpus, amounts in held.booking))
        share = entry.on(held.pool).proportional(node for node, _ in held.seats)
        is_even = shares_of(held.seats, per_gpu) == held.booking and min(per_gpu) >= 1
        return is_even and entry.on(held.pool).serves(per_gpu, share)

    def _keep(self, entry: QueueEntry, booking: Booking) -> None:
        self._kept[entry] = booking
        self._all[_pool_of(entry).gpu_type].take(booking)
        use = self._round.quotas.of_booking(entry, _pool_of(entry), booking)
        self._quotas.take(entry, use)
        if entry.may_be_displaced and self._displaces:
            self._quotas.count_releasable(entry, 1)

    def _give_up(self, entry: QueueEntry) -> Booking:
        booking = self._kept.pop(entry)
        self._all[_pool_of(entry).gpu_type].give_back(booking)
        self._no_more_kept(entry)
        self._quotas.drop(entry)
        return booking

    def _no_more_kept(self, entry: QueueEntry) -> None:
        if entry.may_be_displaced and self._displaces:
            self._quotas.count_releasable(entry, -1)

    def stays(self, entry: QueueEntry) -> bool:
        """Seat a running job in its own place, if that is still kept for it."""
        if entry not in self._kept:
            return False
        pool = _pool_of(entry)
        booking = self._kept.pop(entry)
        self._no_more_kept(entry)
        self._decided[pool.gpu_type].take(booking)
        self._seated[pool.gpu_type][entry] = booking
        return True

    # Newcomers

    def admit(self, entry: QueueEntry) -> bool:
        """Seat a newcomer, or note why it waits."""
        reason = Reason.HEAD_OF_LINE if self._blocked and not entry.is_profile_run else self._try(entry)
        if reason is not None:
            in_nobodys_way = reason in NEVER or reason is Reason.QUOTA_FULL
            waits_in_front = not in_nobodys_way and not entry.is_profile_run
            self._blocked |= waits_in_front and not self._round.line.passes
            self._waiting.append((entry, reason))
        elif entry.is_profile_run:
            self._profile_gpus_held += entry.gpus
        return reason is None

    def _try(self, entry: QueueEntry) -> Reason | None:
        profile_gpus = self._profile_gpus_held + entry.gpus
        if entry.is_profile_run and self._profile_gpus_held > 0 and profile_gpus > self._round.profile_gpus:
            return never(entry, self._round.pools) or Reason.PROFILE_SHARE_USED
        pools = fastest_first(entry, self._round.pools)
        like = _like(entry)
        if like in self._refused:
            return self._refused[like] or self._not_now(entry, pools)
        if self._enters(entry, pools):
            return None
        reason = never(entry, self._round.pools)
        if entry.gpus == 1:  # larger ones may be split once no server has all their GPUs
            self._refused[like] = reason
        return reason or self._not_now(entry, pools)

    def _enters(self, entry: QueueEntry, pools: list[Pool]) -> bool:
        for pool in pools:
            booking = self._find(entry, pool, self._all[pool.gpu_type])
            if booking and self.quotas_allow(entry, pool, booking):
                self.seat(entry, pool, booking)
                return True
        return self._displaces and any(self._displace(entry, pool) for pool in pools)

    def _spread_those_who_wait(self) -> None:
        """Let jobs that the policy wants to lie on the fewest nodes have GPUs anywhere that nobody else took."""
        self._waiting.sort(key=lambda entry: entry[0].rank)
        self._waiting = [
            (entry, reason)
            for entry, reason in self._waiting
            if "pack" not in entry.placements.values() or not self._enters_anyhow(entry)
        ]

    def _enters_anyhow(self, entry: QueueEntry) -> bool:
        entry = entry.spread_anywhere()
        held = entry.held
        if held is not None and entry.place_is_there:
            wanted = self._wanted_in_place(entry, held)
            fits = self._all[held.pool.gpu_type].fits(wanted)
            if fits and self.quotas_allow(entry, held.pool, wanted):
                self.seat(entry, held.pool, wanted)
                return True
        return self._enters(entry, fastest_first(entry, self._round.pools))

    def _find(self, entry: QueueEntry, pool: Pool, ledger: Reservations) -> Booking:
        demand = self.demand(entry, pool)
        if ledger.unheld < entry.gpus:
            return ()
        return self._choose(entry, ledger, demand) or ()

    @staticmethod
    def _choose(entry: QueueEntry, ledger: Reservations, demand: Vector | None) -> Booking | None:
        pool = ledger.pool
        rates = entry.on(pool).shares if demand is None else np.array(demand, dtype=np.int64)
        allowed = entry.open_nodes(pool)
        room: Rooms = np.where(allowed, ledger.room(rates), 0)
        seats = choose_for(entry, pool, room, np.arange(len(pool.nodes), dtype=np.float64))
        if seats is None:
            return None
        by_gpus = np.where(allowed, np.maximum(0, ledger.free_gpus), 0)
        if entry.place(pool) != "spread" and len(seats) > nodes_needed(entry.gpus, by_gpus):
            return None
        per_gpu = entry.on(pool).proportional(node for node, _ in seats) if demand is None else demand
        booking = shares_of(seats, per_gpu)
        return booking if ledger.fits(booking) else None

    def _displace(self, entry: QueueEntry, pool: Pool) -> bool:
        """Take the places of running jobs behind the queue entry, from the end of the line, until it fits."""
        at_best = self._find(entry, pool, self._decided[pool.gpu_type])
        use = self._round.quotas.of_booking(entry, pool, at_best)
        if not at_best or not self._quotas.could_fit(use):
            return False
        released = self._release_quota(entry, use)
        placed = bool(released) and self._takes_place(entry, pool)
        for victim in reversed(list(self._kept)):
            if placed or not self._quotas.fits(use):
                break
            if _pool_of(victim) is not pool:
                continue
            if not victim.may_be_displaced or victim.rank < entry.rank:
                break
            released.append((victim, self._give_up(victim)))
            placed = self._takes_place(entry, pool)
        for victim, place in reversed(released):
            if not placed or self._may_return(victim, place):
                self._keep(victim, place)
        return placed

    def _takes_place(self, entry: QueueEntry, pool: Pool) -> bool:
        booking = self._find(entry, pool, self._all[pool.gpu_type])
        if not booking or not self.quotas_allow(entry, pool, booking):
            return False
        self.seat(entry, pool, booking)
        self._refused.clear()
        return True

    def _release_quota(self, entry: QueueEntry, use: Use) -> list[tuple[QueueEntry, Booking]]:
        """Take the places of running jobs behind the queue entry that hold what it lacks of its quotas, from the end of
        the line, until these have room."""
        released: list[tuple[QueueEntry, Booking]] = []
        for victim in reversed(list(self._kept)):
            if self._quotas.fits(use) or not victim.may_be_displaced or victim.rank < entry.rank:
                break
            if self._quotas.would_help(victim, use):
                released.append((victim, self._give_up(victim)))
        return released

    def _may_return(self, victim: QueueEntry, place: Booking) -> bool:
        pool = _pool_of(victim)
        return self._all[pool.gpu_type].fits(place) and self.quotas_allow(victim, pool, place)

    def quotas_allow(self, entry: QueueEntry, pool: Pool, booking: Booking) -> bool:
        """Whether the job's quotas have room for these shares."""
        return not entry.job.quotas or self._quotas.fits(self._round.quotas.of_booking(entry, pool, booking))

    def seat(self, entry: QueueEntry, pool: Pool, booking: Booking) -> None:
        """Give a job its shares, which must be free."""
        self._decided[pool.gpu_type].take(booking)
        self._all[pool.gpu_type].take(booking)
        self._quotas.take(entry, self._round.quotas.of_booking(entry, pool, booking))
        self._seated[pool.gpu_type][entry] = booking

    def _not_now(self, entry: QueueEntry, pools: list[Pool]) -> Reason:
        """Why a job that could run does not run now."""
        if entry.job.running is not None:
            return Reason.YIELDED
        if entry.job.quotas and self._lacks_quota(entry, pools):
            return Reason.QUOTA_FULL
        roomy = [pool for pool in pools if self._all[pool.gpu_type].unheld >= entry.gpus]
        if not roomy:
            return Reason.NO_FREE_GPU
        reason = AS_PLACED.get(entry.wanted(roomy[0]))
        if reason is not None and not any(self._has_place(entry, pool) for pool in roomy):
            return reason
        return Reason.NO_FREE_CPU_OR_MEMORY

    def _lacks_quota(self, entry: QueueEntry, pools: list[Pool]) -> bool:
        """Whether its quotas have too little left for its demand on each GPU type, and note which."""
        uses = [self._use_of_demand(entry, pool) for pool in pools]
        if not uses or any(self._quotas.fits(use) for use in uses):
            return False
        self._quotas.note_full(entry, uses[0])
        return True

    def _use_of_demand(self, entry: QueueEntry, pool: Pool) -> Use:
        demand = self.demand(entry, pool)
        per_gpu = entry.on(pool).proportional_to(pool.best_share) if demand is None else demand
        return self._round.quotas.of_newcomer(entry, pool, fewest_pods(entry.job), per_gpu)

    def _has_place(self, entry: QueueEntry, pool: Pool) -> bool:
        """Whether its GPUs could lie as they are to, if CPU and memory were no matter."""
        free = np.where(entry.open_nodes(pool), np.maximum(0, self._all[pool.gpu_type].free_gpus), 0)
        return choose_for(entry, pool, free, free.astype(np.float64)) is not None


_Like = tuple[
    JobClass,
    Placement,
    tuple[tuple[str, Placement], ...],
    tuple[str, ...] | None,
    tuple[str, ...] | None,
    tuple[QuotaDraw, ...],
]
"""What decides where a job fits: its kind, its placement, how it is to lie by GPU type, the nodes and GPU types that it
may use, and its quotas."""


def _like(entry: QueueEntry) -> _Like:
    placements = tuple(entry.placements.items())
    return entry.info.job_class, entry.info.placement, placements, entry.job.nodes, entry.types, entry.job.quotas


def _pool_of(entry: QueueEntry) -> Pool:
    if entry.held is None:
        raise LookupError(f"{entry.name} holds nothing")
    return entry.held.pool
