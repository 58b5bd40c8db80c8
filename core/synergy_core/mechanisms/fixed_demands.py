"""Gives jobs their whole demand vectors or nothing: what `greedy`, `drf` and `tetris` have in common.

* A running job keeps its place until the walk comes to it. Whether a job above it may take that place is up to the
  mechanism (`displaces`). Jobs that may not be preempted and profile runs never lose theirs, even where pods of others
  have taken the rest of their node.
* A newcomer goes to the first nodes that fit, by name. One that is larger than a server is split over the fewest
  servers, never for more CPU or memory.
* A demand that not even the empty cluster could meet (pods of others hold too much, servers differ) is replaced by the
  GPU-proportional share. Otherwise the job would wait forever.
* No nodes are reserved for promoted jobs: these mechanisms are there to be compared with.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from synergy_core.mechanisms.mechanism import Outcome
from synergy_core.mechanisms.packing.statement import Packing
from synergy_core.model.placement import Rooms, nodes_needed
from synergy_core.model.pool import Pool, Reservation, Reservations, shares_of
from synergy_core.model.reasons import Reason
from synergy_core.model.resources import Vector, smaller, split_down
from synergy_core.selection.admission import AdmissionWalk
from synergy_core.selection.diagnosis import AS_PLACED, choose_for
from synergy_core.selection.job_info import Held
from synergy_core.selection.kept_places import Likeness, likeness, pool_of
from synergy_core.selection.pool_selection import PoolSelection
from synergy_core.selection.queue_entry import QueueEntry
from synergy_core.selection.quotas import Use, fewest_pods
from synergy_core.selection.round import Round


class FixedDemands(AdmissionWalk):
    """A round in the making: a job claims its whole demand."""

    def __init__(self, round_: Round, *, displaces: bool) -> None:
        super().__init__(round_, displaces=displaces)
        self._decided = {pool.gpu_type: Reservations(pool) for pool in round_.pools}
        """What jobs have that run this round for certain."""
        self._all = {pool.gpu_type: Reservations(pool) for pool in round_.pools}
        """That, and the places that are still kept."""
        self._empty = {pool.gpu_type: Reservations(pool) for pool in round_.pools}
        self._assigned: dict[str, dict[QueueEntry, Reservation]] = {pool.gpu_type: {} for pool in round_.pools}
        self._demands: dict[tuple[Likeness, str], Vector | None] = {}
        self._refused: set[Likeness] = set()
        """Newcomers of one GPU that found no place since a job last lost one. Larger ones may be split by now."""
        self._keep_places()

    def newcomers(self) -> Iterator[QueueEntry]:
        """The entries of the queue that have no place."""
        return (entry for entry in self._round.queue if not self.is_assigned(entry))

    def is_assigned(self, entry: QueueEntry) -> bool:
        """The job runs this round."""
        return any(entry in assigned for assigned in self._assigned.values())

    def outcome(self) -> Outcome:
        """What was decided."""
        self._spread_those_who_wait()
        packings = []
        for pool in self._round.pools:
            packing = Packing(PoolSelection(self._decided[pool.gpu_type]))
            for entry, reservation in self._assigned[pool.gpu_type].items():
                packing.assign(entry, reservation, reservation)
            packings.append(packing)
        return Outcome(packings, self._waiting, self._quotas.full, self._losses)

    def reservations(self, pool: Pool) -> Reservations:
        """What is taken on the pool's nodes, kept places included."""
        return self._all[pool.gpu_type]

    def demand(self, entry: QueueEntry, pool: Pool) -> Vector | None:
        """The job's demand per GPU on the pool; None where only its proportional share can be met there."""
        key = (likeness(entry), pool.gpu_type)
        if key not in self._demands:
            demand = entry.on(pool).demand
            met = self._choose(entry, self._empty[pool.gpu_type], demand) is not None
            self._demands[key] = demand if met else None
        return self._demands[key]

    def quotas_allow(self, entry: QueueEntry, pool: Pool, reservation: Reservation) -> bool:
        """The job's quotas have room for these shares."""
        return not entry.job.quotas or self._quotas.fits(self._round.quotas.of_reservation(entry, pool, reservation))

    def assign(self, entry: QueueEntry, pool: Pool, reservation: Reservation) -> None:
        """Give a job its shares, which must be free."""
        self._decided[pool.gpu_type].take(reservation)
        self._all[pool.gpu_type].take(reservation)
        self._quotas.take(entry, self._round.quotas.of_reservation(entry, pool, reservation))
        self._assigned[pool.gpu_type][entry] = reservation

    def takes(self, entry: QueueEntry, pool: Pool, reservation: Reservation) -> bool:
        """Give a job shares that are free, if its quotas and its tenant allow it."""
        if self._round.tenants and not self._tenant_may_have(entry, pool):
            return False
        if not self.quotas_allow(entry, pool, reservation):
            return False
        self.assign(entry, pool, reservation)
        self.tenants.decide(entry, pool.gpu_type)
        return True

    def _ledger(self, pool: Pool) -> Reservations:
        return self._all[pool.gpu_type]

    def _nothing_is_left(self, fewest_gpus: int) -> bool:
        ledgers = (self._decided if self._displaces else self._all).values()
        return all(ledger.unheld < fewest_gpus for ledger in ledgers)

    # Running jobs

    def _hold_places(self, running: Sequence[QueueEntry]) -> None:
        for entry in running:  # before one grows to its demand: the others stay with what they hold at least
            if entry.held is not None and entry.keeps_its_gpus and entry.info.nodes_are_there:
                self._hold(entry, entry.held.reservation)
        for entry in sorted(running, key=lambda one: (not one.keeps_its_gpus, not self._keeps_what_it_has(one))):
            if entry in self._held:
                self._release(entry)
            reservation = self._in_place(entry)
            if reservation is not None:
                self._hold(entry, reservation)

    def _keeps_what_it_has(self, entry: QueueEntry) -> bool:
        """A running job goes on with just what it holds; else it gets its demand."""
        if self._round.mode == "fill" or entry.is_profile_run:
            return True
        return not self._displaces and self._serves(entry)

    def _in_place(self, entry: QueueEntry) -> Reservation | None:
        """What a running job gets on its own nodes; None where it cannot stay."""
        held = entry.held
        if held is None or self._round.mode == "fill":
            return None if held is None else held.reservation
        if entry.place_is_there:
            wanted = self._wanted_in_place(entry, held)
            if self._all[held.pool.gpu_type].fits(wanted):
                return wanted if self._stays_within_quotas(entry, held, wanted) else held.reservation
        return held.reservation if entry.keeps_its_gpus and entry.info.nodes_are_there else None

    def _stays_within_quotas(self, entry: QueueEntry, held: Held, wanted: Reservation) -> bool:
        """A running job may have this in its place: what its quotas have room for, or no more than it has."""
        if not entry.job.quotas:
            return True
        have = dict(self._round.quotas.of_reservation(entry, held.pool, held.reservation))
        use = self._round.quotas.of_reservation(entry, held.pool, wanted)
        return self._quotas.fits(tuple(one for one in use if one[1] > have.get(one[0], 0)))

    def _wanted_in_place(self, entry: QueueEntry, held: Held) -> Reservation:
        if self._keeps_what_it_has(entry):
            return held.reservation
        demand = self.demand(entry, held.pool)
        if demand is None:
            demand = entry.on(held.pool).proportional(node for node, _ in held.assignments)
        return shares_of(held.assignments, demand)

    @staticmethod
    def _serves(entry: QueueEntry) -> bool:
        """A job has the same beside each GPU, and is as fast with it as at its share."""
        held = entry.held
        if held is None or not held.reservation:
            return False
        per_gpu = smaller(*(split_down(amounts, gpus) for _, gpus, amounts in held.reservation))
        share = entry.on(held.pool).proportional(node for node, _ in held.assignments)
        is_even = shares_of(held.assignments, per_gpu) == held.reservation and min(per_gpu) >= 1
        return is_even and entry.on(held.pool).serves(per_gpu, share)

    def _confirm(self, entry: QueueEntry, reservation: Reservation) -> None:
        pool = pool_of(entry)
        self._decided[pool.gpu_type].take(reservation)
        self._assigned[pool.gpu_type][entry] = reservation

    def _use_of_place(self, entry: QueueEntry, reservation: Reservation) -> Use:
        return self._round.quotas.of_reservation(entry, pool_of(entry), reservation)

    def _may_return(self, entry: QueueEntry, place: Reservation) -> bool:
        pool = pool_of(entry)
        return self._all[pool.gpu_type].fits(place) and self.quotas_allow(entry, pool, place)

    # Newcomers

    def _enters(self, entry: QueueEntry, pools: Sequence[Pool]) -> bool:
        like = likeness(entry)
        remembers = not self._round.tenants  # which may refuse one job, and allow it to one that is alike
        if remembers and like in self._refused:
            return False
        if super()._enters(entry, pools):
            return True
        if remembers and entry.gpus == 1:
            self._refused.add(like)
        return False

    def _place(self, entry: QueueEntry, pool: Pool) -> bool:
        reservation = self._find(entry, pool, self._all[pool.gpu_type])
        if not reservation or not self.quotas_allow(entry, pool, reservation):
            return False
        self.assign(entry, pool, reservation)
        return True

    def _enters_anywhere(self, entry: QueueEntry) -> bool:
        anywhere, held = entry.spread_anywhere(), entry.held
        if held is not None and anywhere.place_is_there:
            wanted = self._wanted_in_place(anywhere, held)
            if self._all[held.pool.gpu_type].fits(wanted) and self.takes(anywhere, held.pool, wanted):
                return True
        return super()._enters_anywhere(entry)

    def _find(self, entry: QueueEntry, pool: Pool, ledger: Reservations) -> Reservation:
        demand = self.demand(entry, pool)
        if ledger.unheld < entry.gpus:
            return ()
        return self._choose(entry, ledger, demand) or ()

    @staticmethod
    def _choose(entry: QueueEntry, ledger: Reservations, demand: Vector | None) -> Reservation | None:
        pool = ledger.pool
        rates = entry.on(pool).shares if demand is None else np.array(demand, dtype=np.int64)
        allowed = entry.open_nodes(pool)
        room: Rooms = np.where(allowed, ledger.room(rates), 0)
        assignments = choose_for(entry, pool, room, np.arange(len(pool.nodes), dtype=np.float64))
        if assignments is None:
            return None
        by_gpus = np.where(allowed, np.maximum(0, ledger.free_gpus), 0)
        few = entry.place(pool) != "spread" and pool.gpu_type not in entry.nearness
        if few and len(assignments) > nodes_needed(entry.gpus, by_gpus):
            return None
        per_gpu = entry.on(pool).proportional(node for node, _ in assignments) if demand is None else demand
        reservation = shares_of(assignments, per_gpu)
        return reservation if ledger.fits(reservation) else None

    def _reserve_nodes(self, entry: QueueEntry) -> None:
        """None are; see the module."""

    # Displacing

    def _note_displaceable(self, entry: QueueEntry, reservation: Reservation, sign: int) -> None:
        """Nothing to note: what jobs have for certain is counted (`_decided`)."""

    def _least_use(self, entry: QueueEntry, pool: Pool) -> Use | None:
        at_best = self._find(entry, pool, self._decided[pool.gpu_type])
        return self._round.quotas.of_reservation(entry, pool, at_best) if at_best else None

    def _displace(self, entry: QueueEntry, pool: Pool) -> bool:
        if not super()._displace(entry, pool):
            return False
        self._refused.clear()
        return True

    # Why a job waits

    def _why_not_now(self, entry: QueueEntry, pools: Sequence[Pool]) -> Reason:
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

    def _lacks_quota(self, entry: QueueEntry, pools: Sequence[Pool]) -> bool:
        """The job's quotas have too little left for its demand on each GPU type; notes which."""
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
        """The job's GPUs could be placed as they must be, if CPU and memory did not matter."""
        free = np.where(entry.open_nodes(pool), np.maximum(0, self._all[pool.gpu_type].free_gpus), 0)
        return choose_for(entry, pool, free, free.astype(np.float64)) is not None
