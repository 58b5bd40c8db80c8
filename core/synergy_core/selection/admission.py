"""The walk along the scheduling queue that admits jobs: the one of all mechanisms (Synergy, section 4.2).

The queue is walked from its head.

* A running job keeps its place until the walk comes to it. It then stays, unless a job above it has taken the place.
* A newcomer takes GPUs that no job holds. If these do not suffice, running jobs below it are displaced, from the end
  of the queue up, and no more of them than needed. A displaced job may still find room elsewhere: then it moves.
* A job that may run on several GPU types takes the first that has room, in the order of `fastest_first`.
* A job that does not fit is skipped, where the policy lets others pass it.
* Profile runs together hold at most their share of the GPUs. One of them may run in any case.
* Where a promoted job finds no room, nodes are reserved for it (`node_reservation`).
* Jobs that may not be preempted, profile runs and protected runs are never displaced.

What a job claims on a node is the strategy of the subclass: its proportional share, with CPU and memory fungible
(`by_share`), or its whole demand (`mechanisms.fixed_demands`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from synergy_core.model.pool import Pool, Reservation, Reservations
from synergy_core.model.reasons import NEVER, Reason
from synergy_core.model.snapshot import Placement, QuotaDraw
from synergy_core.selection.diagnosis import never
from synergy_core.selection.node_reservation import NodeReservation, reserved_from
from synergy_core.selection.queue_entry import QueueEntry, fastest_first
from synergy_core.selection.quotas import QuotaLedger, Use
from synergy_core.selection.round import Round
from synergy_core.throughput.job_class import JobClass

Likeness = tuple[
    JobClass,
    Placement,
    tuple[tuple[str, Placement], ...],
    tuple[str, ...] | None,
    tuple[str, ...] | None,
    tuple[QuotaDraw, ...],
]
"""What decides where a job fits: its class, its placement, also by GPU type, its nodes, GPU types and quotas."""


class AdmissionWalk(ABC):
    """One walk. Each entry of the queue is given to `stays`, and if that is False to `admit`."""

    def __init__(self, round_: Round, *, displaces: bool) -> None:
        self._round = round_
        self._displaces = displaces
        self._quotas = QuotaLedger(round_.quotas)
        """What is taken of the quotas: by jobs that run this round, and by places that are still kept."""
        self._held: dict[QueueEntry, Reservation] = {}
        """Places of running jobs that the walk has not come to."""
        self._displaceable: dict[str, list[QueueEntry]] = {pool.gpu_type: [] for pool in round_.pools}
        """Running jobs that may be displaced, in the order of the queue; those no longer in `_held` are past."""
        self._waiting: list[tuple[QueueEntry, Reason]] = []
        self._node_reservations: dict[str, NodeReservation] = {}
        """Nodes that are reserved for promoted jobs, by GPU type."""
        self._profile_gpus_held = 0
        self._fewest_gpus = 0 if round_.explain else round_.queue.fewest_gpus
        self._blocked = False
        """A job that no other may pass does not fit yet."""
        self._never: dict[Likeness, Reason | None] = {}

    def _keep_places(self) -> None:
        """Keep the places of running jobs: the last act of a subclass's constructor."""
        for entry in self._round.queue.running:
            if self._displaces and entry.may_be_displaced and entry.held is not None:
                self._displaceable[entry.held.pool.gpu_type].append(entry)
        self._hold_places([entry for entry in self._round.queue.running if entry.held is not None])
        self._profile_gpus_held = sum(entry.gpus for entry in self._held if entry.is_profile_run)

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

    @abstractmethod
    def _why_not_now(self, entry: QueueEntry, pools: Sequence[Pool]) -> Reason:
        """Why a job that could run does not run now. `pools` are those that it may use."""

    def _may_fit_after(self, entry: QueueEntry, victim: QueueEntry, pool: Pool) -> bool:
        """Whether the GPUs of a displaced job can make the difference. A cheap test before `_place`."""
        return True

    @abstractmethod
    def _note_displaceable(self, entry: QueueEntry, reservation: Reservation, sign: int) -> None:
        """A kept place may be taken from its job from now on (1), or not any more (-1)."""

    @abstractmethod
    def _reserve_nodes(self, entry: QueueEntry) -> None:
        """Reserve nodes for a promoted job, where none are reserved yet."""

    @abstractmethod
    def _nothing_is_left(self, fewest_gpus: int) -> bool:
        """No job of at least so many GPUs can enter any more, nor be displaced."""

    # The walk

    def walk(self) -> None:
        """Walk the queue to its end, or until nothing is left where no job asks why it waits."""
        for entry in self._round.queue:
            if self.stays(entry):
                continue
            # a profile run may need less than a share: try it even where no share is left
            if self.is_over() and not entry.is_profile_run:
                break  # only running jobs keep their places below
            self.admit(entry)
        self.confirm_the_rest()

    def is_over(self) -> bool:
        """Nothing is left that a job could get, and no job asks why it waits."""
        return not self._round.explain and self._nothing_is_left(self._fewest_gpus)

    def stays(self, entry: QueueEntry) -> bool:
        """Confirm the place of a running job, if it is still kept."""
        if entry not in self._held:
            return False
        self._count_displaceable(entry, -1)
        self._confirm(entry, self._held.pop(entry))
        return True

    def admit(self, entry: QueueEntry) -> bool:
        """Admit a newcomer, or note why it waits."""
        entry = entry.barred_from(reserved_from(entry, self._node_reservations))
        reason = Reason.HEAD_OF_LINE if self._blocked and not entry.is_profile_run else self._try(entry)
        if reason is None:
            self._profile_gpus_held += entry.gpus if entry.is_profile_run else 0
            return True
        reason = self._why_never(entry) or reason
        blocks = reason not in NEVER and reason is not Reason.QUOTA_FULL
        if entry.goes_first and blocks:
            self._reserve_nodes(entry)
        self._blocked |= blocks and not entry.is_profile_run and not self._round.queue.passes
        self._waiting.append((entry, reason))
        return False

    def _try(self, entry: QueueEntry) -> Reason | None:
        profile_gpus = self._profile_gpus_held + entry.gpus
        if entry.is_profile_run and self._profile_gpus_held > 0 and profile_gpus > self._round.profile_gpus:
            return Reason.PROFILE_SHARE_USED
        pools = fastest_first(entry, self._round.pools)
        return None if self._enters(entry, pools) else self._why_not_now(entry, pools)

    def _enters(self, entry: QueueEntry, pools: Sequence[Pool]) -> bool:
        """First a place that no other holds on any of the pools, then one by displacing."""
        if any(self._place(entry, pool) for pool in pools):
            return True
        return self._displaces and any(self._displace(entry, pool) for pool in pools)

    def _why_never(self, entry: QueueEntry) -> Reason | None:
        like = likeness(entry)
        if like not in self._never:
            self._never[like] = never(entry, self._round.pools)
        return self._never[like]

    def confirm_the_rest(self) -> list[QueueEntry]:
        """Let all running jobs stay whose place is still kept; those, in the order of the queue."""
        staying = sorted(self._held, key=lambda entry: entry.rank)
        for entry in staying:
            self.stays(entry)
        return staying

    def _spread_those_who_wait(self) -> None:
        """Admit jobs that the policy wants packed wherever GPUs are left: no other job has taken those."""
        self._waiting.sort(key=lambda one: one[0].rank)
        self._waiting = [
            (entry, reason)
            for entry, reason in self._waiting
            if "pack" not in entry.placements.values() or not self._enters_anywhere(entry)
        ]

    def _enters_anywhere(self, entry: QueueEntry) -> bool:
        anywhere = entry.spread_anywhere()
        return any(self._place(anywhere, pool) for pool in fastest_first(entry, self._round.pools))

    # Kept places

    def _hold(self, entry: QueueEntry, reservation: Reservation) -> None:
        """Keep a running job's place."""
        self._held[entry] = reservation
        self._ledger(pool_of(entry)).take(reservation)
        self._quotas.take(entry, self._use_of_place(entry, reservation))
        self._count_displaceable(entry, 1)

    def _release(self, entry: QueueEntry) -> Reservation:
        """Take a kept place back."""
        self._count_displaceable(entry, -1)
        reservation = self._held.pop(entry)
        self._ledger(pool_of(entry)).give_back(reservation)
        self._quotas.drop(entry)
        return reservation

    def _count_displaceable(self, entry: QueueEntry, sign: int) -> None:
        if self._displaces and entry.may_be_displaced:
            self._quotas.count_releasable(entry, sign)
            self._note_displaceable(entry, self._held[entry], sign)

    # Displacing

    def _displace(self, entry: QueueEntry, pool: Pool) -> bool:
        """Displace running jobs below the entry, from the end of the queue up, until it fits."""
        use = self._least_use(entry, pool)
        if use is None or not self._quotas.could_fit(use):
            return False
        released = self._release_quota(entry, use)
        placed = bool(released) and self._place(entry, pool)
        if not placed and self._quotas.fits(use):
            for victim in self._below(entry, pool):
                released.append((victim, self._release(victim)))
                if self._may_fit_after(entry, victim, pool) and self._place(entry, pool):
                    placed = True
                    break
        for victim, place in reversed(released):
            if not placed or self._may_return(victim, place):
                self._hold(victim, place)
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
            if victim in self._held and victim.rank > entry.rank and victim.job.quotas
        ]
        released: list[tuple[QueueEntry, Reservation]] = []
        for victim in sorted(below, key=lambda victim: -victim.rank):
            if self._quotas.fits(use):
                break
            if self._quotas.would_help(victim, use):
                released.append((victim, self._release(victim)))
        return released

    def _below(self, entry: QueueEntry, pool: Pool) -> Iterable[QueueEntry]:
        """Jobs below the entry that may be displaced on the pool, from the end of the queue up."""
        for victim in reversed(self._displaceable[pool.gpu_type]):
            if victim.rank < entry.rank:
                return
            if victim in self._held and any(pool.is_open[node] for node, _, _ in self._held[victim]):
                yield victim

    def _forget_the_displaced(self, gpu_types: Iterable[str]) -> None:
        for gpu_type in gpu_types:
            displaceable = self._displaceable[gpu_type]
            while displaceable and displaceable[-1] not in self._held:
                displaceable.pop()


def likeness(entry: QueueEntry) -> Likeness:
    """Entries that are alike in this fit in the same places."""
    info, job = entry.info, entry.job
    return info.job_class, info.placement, tuple(entry.placements.items()), job.nodes, entry.types, job.quotas


def pool_of(entry: QueueEntry) -> Pool:
    """The nodes on which a running job is. Raises LookupError for one that holds nothing there."""
    if entry.held is None:
        raise LookupError(f"{entry.name} holds nothing")
    return entry.held.pool
