"""The places of running jobs while the queue is walked: kept until the walk comes to them, or taken for others.

Running jobs below a newcomer are displaced from the end of the queue up, and no more of them than needed. Under tenants
with guarantees a newcomer displaces jobs of the tenant that borrows most first (`tenancy.passes`).

What a job claims on a node is the strategy of the subclass: its proportional share, with CPU and memory fungible
(`by_share`), or its whole demand (`mechanisms.fixed_demands`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Final

from synergy_core.model.pool import Pool, Reservation, Reservations
from synergy_core.model.snapshot import Placement, QuotaDraw
from synergy_core.model.tenant_tree import Path
from synergy_core.selection.preemption.losses import Cause, Loss
from synergy_core.selection.queue_entry import QueueEntry
from synergy_core.selection.quotas import QuotaLedger, Use
from synergy_core.selection.round import Round
from synergy_core.selection.tenancy.ledger import TenantLedger
from synergy_core.selection.tenancy.victims import Victims
from synergy_core.throughput.job_class import JobClass
from synergy_core.throughput.levels import Tier

Likeness = tuple[
    JobClass,
    Placement,
    tuple[tuple[str, Placement], ...],
    tuple[tuple[str, Tier], ...],
    tuple[str, ...] | None,
    tuple[str, ...] | None,
    tuple[QuotaDraw, ...],
]
"""What decides where a job fits: its class, its placement, also by GPU type, its nodes, GPU types and quotas."""


class KeptPlaces(ABC):
    """What running jobs keep and lose during one walk."""

    def __init__(self, round_: Round, *, displaces: bool) -> None:
        self._round = round_
        self._displaces = displaces
        self._reclaims = displaces or (bool(round_.tenants) and round_.mode != "fill")
        """Jobs may be displaced, if only for guarantees."""
        self._has_tenants: Final = bool(round_.tenants)
        self._has_quotas: Final = bool(round_.quotas.limits)
        self._quotas = QuotaLedger(round_.quotas)
        """What is taken of the quotas: by jobs that run this round, and by places that are still kept."""
        self.tenants = TenantLedger(round_.tenants)
        """What tenants have."""
        self._held: dict[QueueEntry, Reservation] = {}
        """Places of running jobs that the walk has not come to."""
        self._displaceable: dict[str, list[QueueEntry]] = {pool.gpu_type: [] for pool in round_.pools}
        """Running jobs that may be displaced, in the order of the queue; those no longer in `_held` are past."""
        self._lines: dict[str, dict[Path, list[QueueEntry]]] = {pool.gpu_type: {} for pool in round_.pools}
        """The same by tenant, where there are any."""
        self._undecided = {pool.gpu_type: 0 for pool in round_.pools}
        """GPUs of open nodes in kept places that are not certain."""
        self.displaced = 0
        """Jobs that were displaced so far."""
        self.lost = 0
        """Running jobs whose tenant may not have their places any more."""
        self._losses: dict[str, Loss] = {}
        """Why running jobs lose their places, in the order in which they do. They may find others."""

    def _keep_places(self) -> None:
        """Keep the places of running jobs: the last act of a subclass's constructor."""
        for entry in self._round.queue.running:
            if self._may_be_displaced(entry) and entry.held is not None:
                self._displaceable[entry.held.pool.gpu_type].append(entry)
                if self._has_tenants:
                    path = self._round.tenants.paths(entry.job)[0]
                    self._lines[entry.held.pool.gpu_type].setdefault(path, []).append(entry)
        self._hold_places([entry for entry in self._round.queue.running if entry.held is not None])
        for entry, reservation in self._held.items() if self._has_tenants else ():
            if not self._may_be_displaced(entry):
                self._decide(entry, reservation)

    def _may_be_displaced(self, entry: QueueEntry) -> bool:
        return self._reclaims and (entry.may_give_way if self._has_tenants else entry.may_be_displaced)

    # The strategy: what a job claims

    @abstractmethod
    def _hold_places(self, running: Sequence[QueueEntry]) -> None:
        """Keep the places of running jobs that may go on where they are, with `_hold`."""

    @abstractmethod
    def _confirm(self, entry: QueueEntry, reservation: Reservation) -> None:
        """Let a running job stay in the place that was kept for it."""

    @abstractmethod
    def _place(self, entry: QueueEntry, pool: Pool) -> bool:
        """Give a job room on a pool, if there is some that no other holds."""

    @abstractmethod
    def _ledger(self, pool: Pool) -> Reservations:
        """What is taken on the pool's nodes, kept places included."""

    @abstractmethod
    def _use_of_place(self, entry: QueueEntry, reservation: Reservation) -> Use:
        """What a running job takes of its quotas in its place."""

    @abstractmethod
    def _least_use(self, entry: QueueEntry, pool: Pool) -> Use | None:
        """What a job takes of its quotas on the pool; None where it would not fit if all were displaced."""

    @abstractmethod
    def _may_return(self, entry: QueueEntry, place: Reservation) -> bool:
        """A running job whose place was taken for a moment still fits there."""

    def _may_fit_after(self, entry: QueueEntry, victim: QueueEntry, pool: Pool) -> bool:
        """Whether the GPUs of a displaced job can make the difference. A cheap test before `_place`."""
        return True

    @abstractmethod
    def _note_displaceable(self, entry: QueueEntry, reservation: Reservation, sign: int) -> None:
        """A kept place may be taken from its job from now on (1), or not any more (-1)."""

    # Kept places

    def stays(self, entry: QueueEntry) -> bool:
        """Confirm the place of a running job, if it is still kept and its tenant may have it."""
        if entry not in self._held:
            return False
        if self._has_tenants and not self._tenant_may_have(entry, pool_of(entry)):
            cause = Cause.LIMIT if self.tenants.is_capped(entry, pool_of(entry).gpu_type) else Cause.GUARANTEE
            self._losses.setdefault(entry.name, Loss(cause))
            self._release(entry)
            self.lost += 1
            return False
        self._count_displaceable(entry, -1)
        reservation = self._held.pop(entry)
        self._confirm(entry, reservation)
        if self._has_tenants:
            self._decide(entry, reservation)
        return True

    def confirm_the_rest(self) -> list[QueueEntry]:
        """Let all running jobs stay whose place is still kept; those, in the order of the queue."""
        return [entry for entry in sorted(self._held, key=lambda entry: entry.rank) if self.stays(entry)]

    def _hold(self, entry: QueueEntry, reservation: Reservation) -> None:
        """Keep a running job's place."""
        self._held[entry] = reservation
        self._ledger(pool_of(entry)).take(reservation)
        if self._has_quotas:
            self._quotas.take(entry, self._use_of_place(entry, reservation))
        self._count_displaceable(entry, 1)
        if self._has_tenants:
            self._count_undecided(entry, reservation, 1)

    def _release(self, entry: QueueEntry) -> Reservation:
        """Take a kept place back."""
        self._count_displaceable(entry, -1)
        reservation = self._held.pop(entry)
        self._ledger(pool_of(entry)).give_back(reservation)
        self._quotas.drop(entry)
        if self._has_tenants:
            self._count_undecided(entry, reservation, -1)
        return reservation

    def _count_displaceable(self, entry: QueueEntry, sign: int) -> None:
        if self._may_be_displaced(entry):
            if self._has_quotas:
                self._quotas.count_releasable(entry, sign)
            self._note_displaceable(entry, self._held[entry], sign)

    # Tenants

    def _gets(self, entry: QueueEntry, pool: Pool) -> bool:
        """Give a job room on a pool, if its tenant may have it and no other job holds it."""
        if not self._has_tenants:
            return self._place(entry, pool)
        if not self._tenant_may_have(entry, pool) or not self._place(entry, pool):
            return False
        self.tenants.decide(entry, pool.gpu_type)
        return True

    def _tenant_may_have(self, entry: QueueEntry, pool: Pool) -> bool:
        decided = self.tenants.is_decided(entry.name)
        return decided or self.tenants.allows(entry, pool.gpu_type, self._not_decided(pool))

    def _not_decided(self, pool: Pool) -> int:
        """GPUs of the pool's open nodes that no job has for certain."""
        return self._ledger(pool).unheld + self._undecided[pool.gpu_type]

    def _decide(self, entry: QueueEntry, reservation: Reservation) -> None:
        if not self.tenants.is_decided(entry.name):
            self._count_undecided(entry, reservation, -1)
            self.tenants.decide(entry, pool_of(entry).gpu_type)

    def _count_undecided(self, entry: QueueEntry, reservation: Reservation, sign: int) -> None:
        pool = pool_of(entry)
        self.tenants.keep(entry, pool.gpu_type, sign)
        self._undecided[pool.gpu_type] += sign * sum(gpus for node, gpus, _ in reservation if pool.is_open[node])

    # Displacing

    def _displace(self, entry: QueueEntry, pool: Pool) -> bool:
        """Displace running jobs below the entry, from the end of the queue up, until it fits."""
        if self._has_tenants and not self._tenant_may_have(entry, pool):
            return False  # whoever gives way
        use = self._least_use(entry, pool)
        if use is None or not self._quotas.could_fit(use):
            return False
        released = self._release_quota(entry, use)
        placed = bool(released) and self._gets(entry, pool)
        if not placed and self._quotas.fits(use):
            for victim in self._victims(entry, pool):
                released.append((victim, self._release(victim)))
                if self._may_fit_after(entry, victim, pool) and self._gets(entry, pool):
                    placed = True
                    break
        for victim, place in reversed(released):
            if not placed or self._may_return(victim, place):
                self._hold(victim, place)
            else:
                self.displaced += 1
                cause = Cause.GUARANTEE if self.tenants.takes_by_guarantee(entry, victim) else Cause.ORDER
                self._losses[victim.name] = Loss(cause, entry.name)
        self._forget_the_displaced({pool.gpu_type, *(pool_of(victim).gpu_type for victim, _ in released)})
        return placed

    def _release_quota(self, entry: QueueEntry, use: Use) -> list[tuple[QueueEntry, Reservation]]:
        """Displace jobs below the entry that hold what it lacks of its quotas, on any GPU type, until these have
        room."""
        if self._quotas.fits(use):
            return []
        below = [
            victim
            for displaceable in self._displaceable.values()
            for victim in displaceable
            if victim in self._held and victim.job.quotas and self._may_displace(entry, victim)
        ]
        released: list[tuple[QueueEntry, Reservation]] = []
        for victim in sorted(below, key=lambda victim: -victim.rank):
            if self._quotas.fits(use):
                break
            if self._quotas.would_help(victim, use):
                released.append((victim, self._release(victim)))
        return released

    def _may_displace(self, entry: QueueEntry, victim: QueueEntry) -> bool:
        if not self._has_tenants:
            return victim.rank > entry.rank
        return Victims(self.tenants, self._round, preempts=self._displaces).may_be(entry, victim)

    def _victims(self, entry: QueueEntry, pool: Pool) -> Iterable[QueueEntry]:
        """Jobs that may be displaced for the entry on the pool, in that order."""
        if not self._has_tenants:
            return self._below(entry, pool)
        lines = self._lines[pool.gpu_type].values()
        for line in lines:
            while line and line[-1] not in self._held:
                line.pop()
        victims = Victims(self.tenants, self._round, preempts=self._displaces)
        return victims.of(entry, lines, lambda victim: self._is_kept_on(victim, pool))

    def _below(self, entry: QueueEntry, pool: Pool) -> Iterable[QueueEntry]:
        """Jobs below the entry that may be displaced on the pool, from the end of the queue up."""
        for victim in reversed(self._displaceable[pool.gpu_type]):
            if victim.rank < entry.rank:
                return
            if self._is_kept_on(victim, pool):
                yield victim

    def _is_kept_on(self, victim: QueueEntry, pool: Pool) -> bool:
        return victim in self._held and any(pool.is_open[node] for node, _, _ in self._held[victim])

    def _forget_the_displaced(self, gpu_types: Iterable[str]) -> None:
        for gpu_type in gpu_types:
            displaceable = self._displaceable[gpu_type]
            while displaceable and displaceable[-1] not in self._held:
                displaceable.pop()


def likeness(entry: QueueEntry) -> Likeness:
    """Entries that are alike in this fit in the same places."""
    info, job = entry.info, entry.job
    return (
        info.job_class,
        info.placement,
        tuple(entry.placements.items()) if entry.placements else (),
        tuple(entry.nearness.items()) if entry.nearness else (),
        job.nodes,
        entry.types,
        job.quotas,
    )


def pool_of(entry: QueueEntry) -> Pool:
    """The nodes on which a running job is. Raises LookupError for one that holds nothing there."""
    if entry.held is None:
        raise LookupError(f"{entry.name} holds nothing")
    return entry.held.pool
