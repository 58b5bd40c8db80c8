"""Who runs in this round: which running jobs stay, which leave, which waiting jobs enter (Synergy, section 4.2).

The line is walked from its head, and each job whose GPU demand can be met is promised its GPUs with the
GPU-proportional share of the other resources; those that cannot be met are skipped. Nothing is asked about what the job
would like beyond that: CPU and memory are fungible, and the mechanism deals them out later.

* A running job stays on its nodes when its turn comes, unless a job ahead of it needed them.
* A newcomer takes GPUs that nobody holds. Only when these do not suffice are running jobs behind it displaced, from
  the end of the line on, and never more than needed. A displaced job may still find room elsewhere: then it moves.
* A job that may run on several GPU types takes the one on which it is fastest at its proportional share, among those
  where it fits without displacing anyone; only if there is none, among those where it fits by displacing.
* Where a job that was promoted finds no room, nodes are kept for it from newcomers that could not be displaced again
  (`node_reservation`).
* A job that may lie on any nodes floats: it is promised a number of GPUs, the mechanism finds the nodes. One that is
  bound to one node, to certain nodes or to more than its share of CPU or memory is seated here.

Jobs that may not be preempted and profile runs keep their places before anyone is asked, even where pods of others have
taken so much since that no place like theirs would be found any more. In fill mode every running job does, and nobody
is displaced.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from synergy_core.model.config import Mode
from synergy_core.model.placement import NodeAssignments
from synergy_core.model.pool import Booking, Pool, Reservations
from synergy_core.model.reasons import NEVER, Reason
from synergy_core.model.resources import Vector, times
from synergy_core.selection.diagnosis import choose_for, free_to, never, not_now, promise_room
from synergy_core.selection.node_reservation import Kept, kept_off, nodes_to_keep
from synergy_core.selection.queue_entry import QueueEntry, fastest_first
from synergy_core.selection.quotas import NO_QUOTAS, QuotaLedger, Quotas, Use
from synergy_core.selection.scheduling_queue import SchedulingQueue


@dataclass(slots=True)
class PoolSelection:
    """Who runs on one pool."""

    reservations: Reservations
    quotas: QuotaLedger = field(default_factory=QuotaLedger)
    """What is taken of the quotas, on all pools."""
    staying: list[QueueEntry] = field(default_factory=list)
    """Running jobs that stay where they are."""
    pinned: set[QueueEntry] = field(default_factory=set)
    """Those of them that keep exactly what they hold, because what others have taken since leaves no other room."""
    seated: dict[QueueEntry, NodeAssignments] = field(default_factory=dict)
    """Newcomers with their nodes."""
    floating: list[QueueEntry] = field(default_factory=list)
    """Newcomers for whom there is room somewhere in the pool."""
    turned_away: list[QueueEntry] = field(default_factory=list)
    """Jobs that wait because the nodes which they are bound to are full."""


@dataclass(slots=True)
class Selection:
    """Who runs in this round, by GPU type, and why the others wait, in the order of the line."""

    pools: dict[str, PoolSelection]
    quotas: QuotaLedger = field(default_factory=QuotaLedger)
    waiting: list[tuple[QueueEntry, Reason]] = field(default_factory=list)


def select(
    line: SchedulingQueue,
    pools: Sequence[Pool],
    *,
    mode: Mode,
    profile_gpus: int,
    explain: bool = True,
    quotas: Quotas = NO_QUOTAS,
) -> Selection:
    """Walk the line. `profile_gpus` is what all profile runs together may hold; one may run in any case.

    Without `explain` the walk ends where nothing is left that anybody could get; those who come after it wait and are
    not in `waiting`.
    """
    walk = _Walk(line, pools, profile_gpus, QuotaLedger(quotas), nobody_leaves=mode == "fill")
    walk.hold_places()
    fewest_gpus = 0 if explain else line.fewest_gpus
    for entry in line:
        if walk.stays(entry):
            continue
        # a profile run may need less than a share: it is asked for even where no share is left
        if not explain and not entry.is_profile_run and walk.is_over(fewest_gpus):
            break
        walk.admit(entry)
    else:
        walk.spread_those_who_wait()
        return walk.selection
    walk.confirm_the_rest()
    walk.spread_those_who_wait()
    return walk.selection


class _Walk:
    def __init__(
        self,
        line: SchedulingQueue,
        pools: Sequence[Pool],
        profile_gpus: int,
        quotas: QuotaLedger,
        *,
        nobody_leaves: bool,
    ) -> None:
        self._quotas = quotas
        self._nobody_leaves = nobody_leaves
        self._line = line
        self._pools = pools
        self._profile_gpus = profile_gpus
        self._profile_gpus_held = 0
        self._blocked = False
        """Whether a job that nobody may pass does not fit yet."""
        self.selection = Selection({pool.gpu_type: PoolSelection(Reservations(pool), quotas) for pool in pools}, quotas)
        self._held: dict[QueueEntry, Booking] = {}
        """What is kept for running jobs whose turn has not come."""
        self._booked: dict[QueueEntry, Booking] = {}
        """What all running jobs have that were not displaced."""
        self._kept: dict[str, Kept] = {}
        """Nodes that are kept for promoted jobs, by GPU type."""
        self._displaceable: dict[str, list[QueueEntry]] = {pool.gpu_type: [] for pool in pools}
        """Running jobs that may be displaced, in the order of the line; those no longer in `_held` are past."""
        self._releasable = {pool.gpu_type: np.zeros(len(pool.nodes), dtype=np.int64) for pool in pools}
        """GPUs of each node that they hold."""
        self._all_releasable = dict.fromkeys(self._releasable, 0)

    # Places of running jobs

    def hold_places(self) -> None:
        """Keep the places of running jobs: all of them in fill mode, those that still fit in round mode."""
        running = [entry for entry in self._line.running if entry.held is not None]
        for entry in sorted(running, key=lambda entry: not entry.keeps_its_gpus):
            if self._nobody_leaves:
                self._hold(entry, entry.info.booking_as_held)
            elif self._may_stay(entry):
                self._hold(entry, entry.info.booking_in_place)
                if entry.may_be_displaced:
                    self._displaceable[_pool_of(entry).gpu_type].append(entry)
                    self._count_releasable(entry, 1)
            elif entry.keeps_its_gpus and entry.info.nodes_are_there:
                self._pin(entry)
        held = [entry.gpus for entry in self._held if entry.is_profile_run]
        self._profile_gpus_held = sum(held)

    def _pin(self, entry: QueueEntry) -> None:
        """Leave a job that keeps its GPUs with what it holds, for its promise does not fit; and so those whose promise
        on the same nodes does not fit any more then."""
        selection = self._pool_selection(_pool_of(entry))
        selection.pinned.add(entry)
        self._hold(entry, entry.info.booking_as_held)
        nothing = tuple((node, 0, (0,) * len(amounts)) for node, _, amounts in self._held[entry])
        if selection.reservations.fits(nothing):
            return
        nodes = {node for node, _, _ in nothing}
        for other in list(self._held):
            beside = _pool_of(other) is _pool_of(entry) and any(node in nodes for node, _, _ in self._held[other])
            if beside and other not in selection.pinned and not other.is_profile_run:
                selection.reservations.give_back(self._held[other])
                self._quotas.drop(other)
                self._pin(other)

    def stays(self, entry: QueueEntry) -> bool:
        """Confirm the place of a running job for which it is still kept."""
        if entry not in self._held:
            return False
        if entry.may_be_displaced and not self._nobody_leaves:
            self._count_releasable(entry, -1)
        del self._held[entry]
        self._pool_selection(_pool_of(entry)).staying.append(entry)
        return True

    def is_over(self, fewest_gpus: int) -> bool:
        """Whether no job of at least so many GPUs can enter any more, nor be told to leave."""
        return all(
            one.reservations.idle + self._all_releasable[gpu_type] < fewest_gpus
            for gpu_type, one in self.selection.pools.items()
        )

    def confirm_the_rest(self) -> None:
        """Let all those stay whose place is still kept."""
        for entry in list(self._held):
            self.stays(entry)

    def _may_stay(self, entry: QueueEntry) -> bool:
        return entry.place_is_there and self._has_room(_pool_of(entry), entry.info.booking_in_place)

    def _may_return(self, entry: QueueEntry) -> bool:
        """Whether a running job whose place was taken away for a moment, or who has just come to it, fits there."""
        return self._may_stay(entry) and self._quotas.fits(self._least_in_place(entry))

    def _least_in_place(self, entry: QueueEntry) -> Use:
        """What of its quotas a running job takes in its place, cut down as far as the mechanism may."""
        held = entry.held
        if held is None or not entry.job.quotas:
            return ()
        least = entry.info.cut_down
        if not (self._nobody_leaves or entry.is_profile_run or entry in self._pool_selection(held.pool).pinned):
            least = shares_at(held.seats, entry.on(held.pool).proportional(node for node, _ in held.seats))
        return self._quotas.quotas.of_booking(entry, held.pool, least)

    def _has_room(self, pool: Pool, booking: Booking) -> bool:
        reservations = self._pool_selection(pool).reservations
        if not reservations.fits(booking):
            return False
        if reservations.floating == 0:
            return True
        reservations.take(booking)
        enough = reservations.idle >= 0
        reservations.give_back(booking)
        return enough

    def _hold(self, entry: QueueEntry, booking: Booking) -> None:
        self._pool_selection(_pool_of(entry)).reservations.take(booking)
        self._held[entry] = self._booked[entry] = booking
        self._quotas.take(entry, self._least_in_place(entry))

    def _count_releasable(self, entry: QueueEntry, sign: int) -> None:
        pool = _pool_of(entry)
        self._quotas.count_releasable(entry, sign)
        for node, gpus, _ in self._held[entry]:
            change = sign * gpus if pool.is_open[node] else 0
            self._releasable[pool.gpu_type][node] += change
            self._all_releasable[pool.gpu_type] += change

    def _pool_selection(self, pool: Pool) -> PoolSelection:
        return self.selection.pools[pool.gpu_type]

    # Newcomers

    def admit(self, entry: QueueEntry) -> None:
        """Promise a newcomer its GPUs, or note why it waits."""
        entry = entry.barred_from(kept_off(entry, self._kept))
        reason = Reason.HEAD_OF_LINE if self._blocked and not entry.is_profile_run else self._try(entry)
        if reason is not None:
            reason = never(entry, self._pools) or reason
            in_nobodys_way = reason in NEVER or reason is Reason.QUOTA_FULL
            if entry.goes_first and not in_nobodys_way:
                self._keep_nodes_for(entry)
            waits_in_front = not in_nobodys_way and not entry.is_profile_run
            self._blocked |= waits_in_front and not self._line.passes
            self.selection.waiting.append((entry, reason))
        elif entry.is_profile_run:
            self._profile_gpus_held += entry.gpus

    def _try(self, entry: QueueEntry) -> Reason | None:
        profile_gpus = self._profile_gpus_held + entry.gpus
        if entry.is_profile_run and self._profile_gpus_held > 0 and profile_gpus > self._profile_gpus:
            return Reason.PROFILE_SHARE_USED
        pools = fastest_first(entry, self._pools)
        if any(self._place(entry, pool) for pool in pools):
            return None
        if not self._nobody_leaves and any(self._displace(entry, pool) for pool in pools):
            return None
        if entry.job.quotas and self._lacks_quota(entry, pools):
            return Reason.QUOTA_FULL
        for pool in pools:
            if not floats(entry, pool):
                self._pool_selection(pool).turned_away.append(entry)
        if entry.reserved and entry.job.running is None and self._would_fit(entry, pools):
            return Reason.KEPT_FREE
        return not_now(entry, [one.reservations for one in self.selection.pools.values()])

    def _place(self, entry: QueueEntry, pool: Pool) -> bool:
        chosen = self._pool_selection(pool)
        reservations = chosen.reservations
        if entry.held is not None and entry.held.pool is pool and self._may_return(entry):
            reservations.take(entry.info.booking_in_place)
            self._quotas.take(entry, self._least_in_place(entry))
            self._booked[entry] = entry.info.booking_in_place
            chosen.staying.append(entry)
            return True
        use = self._quotas.quotas.least_of_newcomer(entry, pool)
        if reservations.idle < entry.gpus or not self._quotas.fits(use):
            return False
        if floats(entry, pool):
            self._quotas.take(entry, use)
            reservations.floating += entry.gpus
            chosen.floating.append(entry)
            return True
        seats = choose_for(entry, pool, *promise_room(entry, reservations))
        if seats is None or not self._has_room(pool, entry.on(pool).booking(seats)):
            return False
        use = self._quotas.quotas.at(entry, pool, seats)
        if not self._quotas.fits(use):
            return False
        self._quotas.take(entry, use)
        reservations.take(entry.on(pool).booking(seats))
        chosen.seated[entry] = seats
        return True

    def _lacks_quota(self, entry: QueueEntry, pools: Iterable[Pool]) -> bool:
        """Whether a newcomer's quotas have too little left on each GPU type, and note which. A running job that lost
        its place to others hears of them."""
        uses = [self._quotas.quotas.least_of_newcomer(entry, pool) for pool in pools]
        if entry.job.running is not None or not uses or any(self._quotas.fits(use) for use in uses):
            return False
        self._quotas.note_full(entry, uses[0])
        return True

    # GPUs that nobody can use who is to lie close together

    def spread_those_who_wait(self) -> None:
        """Let jobs that the policy wants to lie on the fewest nodes have GPUs anywhere that nobody else took."""
        still: list[tuple[QueueEntry, Reason]] = []
        for entry, reason in self.selection.waiting:
            if "pack" not in entry.placements.values() or not self._enters_anyhow(entry):
                still.append((entry, reason))
        self.selection.waiting = still

    def _enters_anyhow(self, entry: QueueEntry) -> bool:
        pools = fastest_first(entry, self._pools)
        anywhere = entry.spread_anywhere()
        if not any(self._place(anywhere, pool) for pool in pools):
            return False
        for pool in pools:
            turned_away = self._pool_selection(pool).turned_away
            if entry in turned_away:
                turned_away.remove(entry)
        return True

    # Nodes that are kept for a promoted job

    def _keep_nodes_for(self, entry: QueueEntry) -> None:
        """Where nothing is kept yet, keep the nodes that are free for the queue entry first."""
        found: list[tuple[Kept, str]] = []
        for pool in fastest_first(entry, self._pools):
            if pool.gpu_type in self._kept:
                continue
            held = [(one, booking) for one, booking in self._booked.items() if _pool_of(one) is pool]
            kept = nodes_to_keep(entry, pool, self._pool_selection(pool).reservations, held)
            found += [(kept, pool.gpu_type)] if kept is not None else []
        if found:
            kept, gpu_type = min(found, key=lambda one: one[0].release)
            self._kept[gpu_type] = kept

    def _would_fit(self, entry: QueueEntry, pools: Iterable[Pool]) -> bool:
        """Whether there would be room if nothing were kept."""
        unbarred, fits = entry.without_reservations(), False
        for pool in pools:
            reservations = self._pool_selection(pool).reservations
            enough = reservations.idle >= entry.gpus
            fits |= enough and choose_for(unbarred, pool, *promise_room(unbarred, reservations)) is not None
        return fits

    # Displacing

    def _displace(self, entry: QueueEntry, pool: Pool) -> bool:
        """Take the places of running jobs behind the queue entry, from the end of the line, until it fits."""
        use = self._quotas.quotas.least_of_newcomer(entry, pool)
        if not self._quotas.could_fit(use) or not self._could_fit(entry, pool):
            return False
        released = self._release_quota(entry, use)
        placed = bool(released) and self._place(entry, pool)
        if not placed and self._quotas.fits(use):
            for victim in self._behind(entry, pool):
                self._release(victim)
                released.append(victim)
                if self._may_fit_after(entry, victim, pool) and self._place(entry, pool):
                    placed = True
                    break
        for victim in reversed(released):
            if not placed or self._may_return(victim):
                self._hold(victim, victim.info.booking_in_place)
                self._count_releasable(victim, 1)
        for gpu_type in {pool.gpu_type, *(_pool_of(victim).gpu_type for victim in released)}:
            line = self._displaceable[gpu_type]
            while line and line[-1] not in self._held:
                line.pop()
        return placed

    def _release_quota(self, entry: QueueEntry, use: Use) -> list[QueueEntry]:
        """Take the places of running jobs behind the queue entry that hold what it lacks of its quotas, from the end of
        the line, on any GPU type, until its quotas have room."""
        if self._quotas.fits(use):
            return []
        behind = [
            victim
            for line in self._displaceable.values()
            for victim in line
            if victim in self._held and victim.rank > entry.rank and victim.job.quotas
        ]
        released: list[QueueEntry] = []
        for victim in sorted(behind, key=lambda victim: -victim.rank):
            if self._quotas.fits(use):
                break
            if self._quotas.would_help(victim, use):
                self._release(victim)
                released.append(victim)
        return released

    def _behind(self, entry: QueueEntry, pool: Pool) -> Iterable[QueueEntry]:
        for victim in reversed(self._displaceable[pool.gpu_type]):
            if victim.rank < entry.rank:
                return
            if victim in self._held and any(pool.is_open[node] for node, _, _ in self._held[victim]):
                yield victim

    def _release(self, victim: QueueEntry) -> None:
        self._count_releasable(victim, -1)
        self._quotas.drop(victim)
        del self._booked[victim]
        self._pool_selection(_pool_of(victim)).reservations.give_back(self._held.pop(victim))

    def _could_fit(self, entry: QueueEntry, pool: Pool) -> bool:
        """Whether there are enough GPUs at all once every job that may be displaced is: a cheap no for most."""
        reservations = self._pool_selection(pool).reservations
        if reservations.idle + self._all_releasable[pool.gpu_type] < entry.gpus:
            return False
        if floats(entry, pool):
            return True
        after = np.array(reservations.free_gpus) + self._releasable[pool.gpu_type]
        rooms = np.where(free_to(entry, pool), after, 0)
        needs_one = entry.place(pool) == "consolidate"
        return bool((rooms.max() if needs_one else rooms.sum()) >= entry.gpus)

    def _may_fit_after(self, entry: QueueEntry, victim: QueueEntry, pool: Pool) -> bool:
        """Whether the GPUs that a victim gave back can have made the difference."""
        reservations = self._pool_selection(pool).reservations
        if reservations.idle < entry.gpus:
            return False
        if floats(entry, pool) or entry.place(pool) != "consolidate":
            return True
        held = victim.held.seats if victim.held is not None else ()
        return any(reservations.free_gpus[node] >= entry.gpus for node, _ in held)


def shares_at(seats: NodeAssignments, per_gpu: Vector) -> Booking:
    """The same amounts beside each GPU of a place."""
    return tuple((node, gpus, times(per_gpu, gpus)) for node, gpus in seats)


def _pool_of(entry: QueueEntry) -> Pool:
    if entry.held is None:
        raise LookupError(f"{entry.name} holds nothing")
    return entry.held.pool


def floats(entry: QueueEntry, pool: Pool) -> bool:
    """Whether any free GPUs of the pool will do, wherever they are."""
    if entry.pods_matter:
        return False
    is_free = entry.job.nodes is None and not entry.reserved.get(pool.gpu_type)
    anywhere = is_free and not entry.on(pool).hard
    return anywhere and (entry.gpus == 1 or entry.place(pool) not in ("consolidate", "pack"))
