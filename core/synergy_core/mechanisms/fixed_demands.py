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
from synergy_core.selection.contender import Contender, Held, fastest_first
from synergy_core.selection.diagnosis import AS_PLACED, choose_for, never
from synergy_core.selection.quotas import QuotaLedger, Use, fewest_pods
from synergy_core.selection.rounds import PoolSelection
from synergy_core.throughput.kind import Kind


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
        self._kept: dict[Contender, Booking] = {}
        """Places that are kept, in the order of the line, those of jobs that cannot lose them first."""
        self._seated: dict[str, dict[Contender, Booking]] = {pool.gpu_type: {} for pool in round_.pools}
        self._waiting: list[tuple[Contender, Reason]] = []
        self._demands: dict[tuple[_Like, str], Vector | None] = {}
        self._refused: dict[_Like, Reason | None] = {}
        """Newcomers of one GPU who found no place since somebody lost one, and why such as they never will."""
        self._profile_gpus_held = 0
        self._blocked = False
        """Whether a job that nobody may pass does not fit yet."""
        self._fewest_gpus = 0 if round_.explain else round_.line.fewest_gpus
        self._keep_places()

    def line(self) -> Iterator[Contender]:
        """Everyone in line, as far as somebody might still get something; the running jobs behind that point stay."""
        for contender in self._round.line:
            if self.is_over():
                break
            yield contender
        self.let_stay()

    def newcomers(self) -> Iterator[Contender]:
        """Everyone in line who is not seated."""
        return (contender for contender in self._round.line if not self.has_seat(contender))

    def let_stay(self) -> list[Contender]:
        """Seat all running jobs for whom a place is kept; those, in the order of the line."""
        staying = sorted(self._kept, key=lambda contender: contender.rank)
        for contender in staying:
            self.stays(contender)
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
            for contender, booking in self._seated[pool.gpu_type].items():
                packing.seat(contender, booking, booking)
            packings.append(packing)
        return Outcome(packings, self._waiting, self._quotas.full)

    def reservations(self, pool: Pool) -> Reservations:
        """What is held on the pool's nodes, the places of running jobs included."""
        return self._all[pool.gpu_type]

    def has_seat(self, contender: Contender) -> bool:
        """Whether it runs."""
        return any(contender in seated for seated in self._seated.values())

    def demand(self, contender: Contender, pool: Pool) -> Vector | None:
        """The job's demand per GPU on the pool; None where only its proportional share can be met there."""
        key = (_like(contender), pool.gpu_type)
        if key not in self._demands:
            wish = contender.on(pool).wish
            met = self._choose(contender, self._empty[pool.gpu_type], wish) is not None
            self._demands[key] = wish if met else None
        return self._demands[key]

    # Running jobs

    def _keep_places(self) -> None:
        running = [contender for contender in self._round.line.running if contender.held is not None]
        for contender in running:  # before one grows to its demand: the others stay with what they hold at least
            if contender.held is not None and contender.keeps_its_gpus and contender.nodes_are_there:
                self._keep(contender, contender.held.booking)
        for contender in sorted(running, key=lambda one: (not one.keeps_its_gpus, not self._keeps_what_it_has(one))):
            if contender in self._kept:
                self._give_up(contender)
            booking = self._in_place(contender)
            if booking is not None:
                self._keep(contender, booking)
        self._profile_gpus_held = sum(contender.gpus for contender in self._kept if contender.is_profile_run)

    def _keeps_what_it_has(self, contender: Contender) -> bool:
        """Whether a running job goes on with just what it holds; else it is to have its demand."""
        if self._round.mode == "fill" or contender.is_profile_run:
            return True
        return not self._displaces and self._serves(contender)

    def _in_place(self, contender: Contender) -> Booking | None:
        """What a running job is to have on its own nodes; None where it cannot stay."""
        held = contender.held
        if held is None or self._round.mode == "fill":
            return None if held is None else held.booking
        if contender.place_is_there:
            wanted = self._wanted_in_place(contender, held)
            if self._all[held.pool.gpu_type].fits(wanted):
                return wanted if self._stays_within_quotas(contender, held, wanted) else held.booking
        return held.booking if contender.keeps_its_gpus and contender.nodes_are_there else None

    def _stays_within_quotas(self, contender: Contender, held: Held, wanted: Booking) -> bool:
        """Whether a running job may have this in its place: what its quotas have room for, or no more than it has."""
        if not contender.job.quotas:
            return True
        have = dict(self._round.quotas.of_booking(contender, held.pool, held.booking))
        use = self._round.quotas.of_booking(contender, held.pool, wanted)
        return self._quotas.fits(tuple(entry for entry in use if entry[1] > have.get(entry[0], 0)))

    def _wanted_in_place(self, contender: Contender, held: Held) -> Booking:
        if self._keeps_what_it_has(contender):
            return held.booking
        demand = self.demand(contender, held.pool)
        if demand is None:
            demand = contender.on(held.pool).proportional(node for node, _ in held.seats)
        return shares_of(held.seats, demand)

    @staticmethod
    def _serves(contender: Contender) -> bool:
        """Whether a job has the same beside each GPU, and is as fast with it as at its share."""
        held = contender.held
        if held is None or not held.booking:
            return False
        per_gpu = smaller(*(split_down(amounts, gpus) for _, gpus, amounts in held.booking))
        share = contender.on(held.pool).proportional(node for node, _ in held.seats)
        is_even = shares_of(held.seats, per_gpu) == held.booking and min(per_gpu) >= 1
        return is_even and contender.on(held.pool).serves(per_gpu, share)

    def _keep(self, contender: Contender, booking: Booking) -> None:
        self._kept[contender] = booking
        self._all[_pool_of(contender).gpu_type].take(booking)
        use = self._round.quotas.of_booking(contender, _pool_of(contender), booking)
        self._quotas.take(contender, use)
        if contender.may_be_displaced and self._displaces:
            self._quotas.count_releasable(contender, 1)

    def _give_up(self, contender: Contender) -> Booking:
        booking = self._kept.pop(contender)
        self._all[_pool_of(contender).gpu_type].give_back(booking)
        self._no_more_kept(contender)
        self._quotas.drop(contender)
        return booking

    def _no_more_kept(self, contender: Contender) -> None:
        if contender.may_be_displaced and self._displaces:
            self._quotas.count_releasable(contender, -1)

    def stays(self, contender: Contender) -> bool:
        """Seat a running job in its own place, if that is still kept for it."""
        if contender not in self._kept:
            return False
        pool = _pool_of(contender)
        booking = self._kept.pop(contender)
        self._no_more_kept(contender)
        self._decided[pool.gpu_type].take(booking)
        self._seated[pool.gpu_type][contender] = booking
        return True

    # Newcomers

    def admit(self, contender: Contender) -> bool:
        """Seat a newcomer, or note why it waits."""
        reason = Reason.HEAD_OF_LINE if self._blocked and not contender.is_profile_run else self._try(contender)
        if reason is not None:
            in_nobodys_way = reason in NEVER or reason is Reason.QUOTA_FULL
            waits_in_front = not in_nobodys_way and not contender.is_profile_run
            self._blocked |= waits_in_front and not self._round.line.passes
            self._waiting.append((contender, reason))
        elif contender.is_profile_run:
            self._profile_gpus_held += contender.gpus
        return reason is None

    def _try(self, contender: Contender) -> Reason | None:
        profile_gpus = self._profile_gpus_held + contender.gpus
        if contender.is_profile_run and self._profile_gpus_held > 0 and profile_gpus > self._round.profile_gpus:
            return never(contender, self._round.pools) or Reason.PROFILE_SHARE_USED
        pools = fastest_first(contender, self._round.pools)
        like = _like(contender)
        if like in self._refused:
            return self._refused[like] or self._not_now(contender, pools)
        if self._enters(contender, pools):
            return None
        reason = never(contender, self._round.pools)
        if contender.gpus == 1:  # larger ones may be split once no server has all their GPUs
            self._refused[like] = reason
        return reason or self._not_now(contender, pools)

    def _enters(self, contender: Contender, pools: list[Pool]) -> bool:
        for pool in pools:
            booking = self._find(contender, pool, self._all[pool.gpu_type])
            if booking and self.quotas_allow(contender, pool, booking):
                self.seat(contender, pool, booking)
                return True
        return self._displaces and any(self._displace(contender, pool) for pool in pools)

    def _spread_those_who_wait(self) -> None:
        """Let jobs that the policy wants to lie on the fewest nodes have GPUs anywhere that nobody else took."""
        self._waiting.sort(key=lambda entry: entry[0].rank)
        self._waiting = [
            (contender, reason)
            for contender, reason in self._waiting
            if "pack" not in contender.lies.values() or not self._enters_anyhow(contender)
        ]

    def _enters_anyhow(self, contender: Contender) -> bool:
        close, contender.lies = contender.lies, dict.fromkeys(contender.lies, "auto")
        held = contender.held
        if held is not None and contender.place_is_there:
            wanted = self._wanted_in_place(contender, held)
            fits = self._all[held.pool.gpu_type].fits(wanted)
            if fits and self.quotas_allow(contender, held.pool, wanted):
                self.seat(contender, held.pool, wanted)
                return True
        if self._enters(contender, fastest_first(contender, self._round.pools)):
            return True
        contender.lies = close
        return False

    def _find(self, contender: Contender, pool: Pool, ledger: Reservations) -> Booking:
        demand = self.demand(contender, pool)
        if ledger.unheld < contender.gpus:
            return ()
        return self._choose(contender, ledger, demand) or ()

    @staticmethod
    def _choose(contender: Contender, ledger: Reservations, demand: Vector | None) -> Booking | None:
        pool = ledger.pool
        rates = contender.on(pool).shares if demand is None else np.array(demand, dtype=np.int64)
        allowed = contender.open_nodes(pool)
        room: Rooms = np.where(allowed, ledger.room(rates), 0)
        seats = choose_for(contender, pool, room, np.arange(len(pool.nodes), dtype=np.float64))
        if seats is None:
            return None
        by_gpus = np.where(allowed, np.maximum(0, ledger.free_gpus), 0)
        if contender.place(pool) != "spread" and len(seats) > nodes_needed(contender.gpus, by_gpus):
            return None
        per_gpu = contender.on(pool).proportional(node for node, _ in seats) if demand is None else demand
        booking = shares_of(seats, per_gpu)
        return booking if ledger.fits(booking) else None

    def _displace(self, contender: Contender, pool: Pool) -> bool:
        """Take the places of running jobs behind the contender, from the end of the line, until it fits."""
        at_best = self._find(contender, pool, self._decided[pool.gpu_type])
        use = self._round.quotas.of_booking(contender, pool, at_best)
        if not at_best or not self._quotas.could_fit(use):
            return False
        released = self._release_quota(contender, use)
        placed = bool(released) and self._takes_place(contender, pool)
        for victim in reversed(list(self._kept)):
            if placed or not self._quotas.fits(use):
                break
            if _pool_of(victim) is not pool:
                continue
            if not victim.may_be_displaced or victim.rank < contender.rank:
                break
            released.append((victim, self._give_up(victim)))
            placed = self._takes_place(contender, pool)
        for victim, place in reversed(released):
            if not placed or self._may_return(victim, place):
                self._keep(victim, place)
        return placed

    def _takes_place(self, contender: Contender, pool: Pool) -> bool:
        booking = self._find(contender, pool, self._all[pool.gpu_type])
        if not booking or not self.quotas_allow(contender, pool, booking):
            return False
        self.seat(contender, pool, booking)
        self._refused.clear()
        return True

    def _release_quota(self, contender: Contender, use: Use) -> list[tuple[Contender, Booking]]:
        """Take the places of running jobs behind the contender that hold what it lacks of its quotas, from the end of
        the line, until these have room."""
        released: list[tuple[Contender, Booking]] = []
        for victim in reversed(list(self._kept)):
            if self._quotas.fits(use) or not victim.may_be_displaced or victim.rank < contender.rank:
                break
            if self._quotas.would_help(victim, use):
                released.append((victim, self._give_up(victim)))
        return released

    def _may_return(self, victim: Contender, place: Booking) -> bool:
        pool = _pool_of(victim)
        return self._all[pool.gpu_type].fits(place) and self.quotas_allow(victim, pool, place)

    def quotas_allow(self, contender: Contender, pool: Pool, booking: Booking) -> bool:
        """Whether the job's quotas have room for these shares."""
        return not contender.job.quotas or self._quotas.fits(self._round.quotas.of_booking(contender, pool, booking))

    def seat(self, contender: Contender, pool: Pool, booking: Booking) -> None:
        """Give a job its shares, which must be free."""
        self._decided[pool.gpu_type].take(booking)
        self._all[pool.gpu_type].take(booking)
        self._quotas.take(contender, self._round.quotas.of_booking(contender, pool, booking))
        self._seated[pool.gpu_type][contender] = booking

    def _not_now(self, contender: Contender, pools: list[Pool]) -> Reason:
        """Why a job that could run does not run now."""
        if contender.job.running is not None:
            return Reason.YIELDED
        if contender.job.quotas and self._lacks_quota(contender, pools):
            return Reason.QUOTA_FULL
        roomy = [pool for pool in pools if self._all[pool.gpu_type].unheld >= contender.gpus]
        if not roomy:
            return Reason.NO_FREE_GPU
        reason = AS_PLACED.get(contender.wanted(roomy[0]))
        if reason is not None and not any(self._has_place(contender, pool) for pool in roomy):
            return reason
        return Reason.NO_FREE_CPU_OR_MEMORY

    def _lacks_quota(self, contender: Contender, pools: list[Pool]) -> bool:
        """Whether its quotas have too little left for its demand on each GPU type, and note which."""
        uses = [self._use_of_demand(contender, pool) for pool in pools]
        if not uses or any(self._quotas.fits(use) for use in uses):
            return False
        self._quotas.note_full(contender, uses[0])
        return True

    def _use_of_demand(self, contender: Contender, pool: Pool) -> Use:
        demand = self.demand(contender, pool)
        per_gpu = contender.on(pool).proportional_to(pool.best_share) if demand is None else demand
        return self._round.quotas.of_newcomer(contender, pool, fewest_pods(contender.job), per_gpu)

    def _has_place(self, contender: Contender, pool: Pool) -> bool:
        """Whether its GPUs could lie as they are to, if CPU and memory were no matter."""
        free = np.where(contender.open_nodes(pool), np.maximum(0, self._all[pool.gpu_type].free_gpus), 0)
        return choose_for(contender, pool, free, free.astype(np.float64)) is not None


_Like = tuple[
    Kind,
    Placement,
    tuple[tuple[str, Placement], ...],
    tuple[str, ...] | None,
    tuple[str, ...] | None,
    tuple[QuotaDraw, ...],
]
"""What decides where a job fits: its kind, its placement, how it is to lie by GPU type, the nodes and GPU types that it
may use, and its quotas."""


def _like(contender: Contender) -> _Like:
    lies = tuple(contender.lies.items())
    return contender.kind, contender.placement, lies, contender.job.nodes, contender.types, contender.job.quotas


def _pool_of(contender: Contender) -> Pool:
    if contender.held is None:
        raise LookupError(f"{contender.name} holds nothing")
    return contender.held.pool
