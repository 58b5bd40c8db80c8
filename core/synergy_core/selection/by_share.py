"""Selects the jobs of a round by their GPUs (Synergy, section 4.2).

A job whose GPU demand can be met reserves its GPUs, with the GPU-proportional share of the other resources. What it
would like beyond that does not matter here: CPU and memory are fungible, and the mechanism allocates them later.

* A job that may run on any nodes floats: it reserves a number of GPUs, and the mechanism finds the nodes.
* A job that is bound to one node, to certain nodes or to more than its share gets its nodes here.
* A job that may not be preempted and a profile run keep their places, even where pods of others have taken so much that
  no such place would be found again. In fill mode every running job does, and none is displaced.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from synergy_core.model.pool import Pool, Reservation, Reservations, shares_of
from synergy_core.model.reasons import Reason
from synergy_core.selection.admission import AdmissionWalk
from synergy_core.selection.diagnosis import choose_for, free_to, not_now, room_to_reserve
from synergy_core.selection.kept_places import pool_of
from synergy_core.selection.node_reservation import NodeReservation, nodes_to_reserve
from synergy_core.selection.pool_selection import PoolSelection, Selection
from synergy_core.selection.queue_entry import QueueEntry, fastest_first
from synergy_core.selection.quotas import Use
from synergy_core.selection.round import Round


def select(round_: Round) -> Selection:
    """Walk the queue. Without `explain`, jobs below the point where nothing is left are not in `waiting`."""
    walk = _ShareWalk(round_)
    walk.walk()
    return walk.selection()


class _ShareWalk(AdmissionWalk):
    """A job claims its proportional share, somewhere on the pool or on certain nodes."""

    def __init__(self, round_: Round) -> None:
        super().__init__(round_, displaces=round_.mode != "fill")
        self._selected = {pool.gpu_type: PoolSelection(Reservations(pool), self._quotas) for pool in round_.pools}
        self._stay: dict[QueueEntry, Reservation] = {}
        """What running jobs have that stay."""
        self._displaceable_gpus = {pool.gpu_type: np.zeros(len(pool.nodes), dtype=np.int64) for pool in round_.pools}
        """GPUs of each open node that displaceable jobs hold."""
        self._changed_gpus: dict[str, list[tuple[int, int]]] = {pool.gpu_type: [] for pool in round_.pools}
        """Changes of these that are not counted yet: node, GPUs."""
        self._all_displaceable_gpus = dict.fromkeys(self._displaceable_gpus, 0)
        self._keep_places()

    def selection(self) -> Selection:
        """What was decided."""
        self._spread_those_who_wait()
        return Selection(self._selected, self._quotas, self._waiting, self._losses)

    def _on(self, pool: Pool) -> PoolSelection:
        return self._selected[pool.gpu_type]

    def _ledger(self, pool: Pool) -> Reservations:
        return self._selected[pool.gpu_type].reservations

    def _nothing_is_left(self, fewest_gpus: int) -> bool:
        return all(
            one.reservations.idle + self._all_displaceable_gpus[gpu_type] < fewest_gpus
            for gpu_type, one in self._selected.items()
        )

    # Running jobs

    def _hold_places(self, running: Sequence[QueueEntry]) -> None:
        for entry in sorted(running, key=lambda entry: not entry.keeps_its_gpus):
            if not self._displaces:
                self._hold(entry, entry.info.reservation_as_held)
            elif self._may_stay(entry):
                self._hold(entry, entry.info.reservation_in_place)
            elif entry.keeps_its_gpus and entry.info.nodes_are_there:
                self._pin(entry)

    def _pin(self, entry: QueueEntry) -> None:
        """Leave a job that keeps its GPUs with what it holds, because its reservation does not fit.

        Other such jobs on the same nodes are pinned too if their reservations do not fit any more.
        """
        selected = self._on(pool_of(entry))
        selected.pinned.add(entry)
        self._hold(entry, entry.info.reservation_as_held)
        nothing = tuple((node, 0, (0,) * len(amounts)) for node, _, amounts in self._held[entry])
        if selected.reservations.fits(nothing):
            return
        nodes = {node for node, _, _ in nothing}
        for other in list(self._held):
            beside = pool_of(other) is pool_of(entry) and any(node in nodes for node, _, _ in self._held[other])
            if beside and other not in selected.pinned and not other.is_profile_run:
                self._release(other)
                self._pin(other)

    def _confirm(self, entry: QueueEntry, reservation: Reservation) -> None:
        self._stay[entry] = reservation
        self._on(pool_of(entry)).staying.append(entry)

    def _note_displaceable(self, entry: QueueEntry, reservation: Reservation, sign: int) -> None:
        pool = pool_of(entry)
        changes = [(node, sign * gpus) for node, gpus, _ in reservation if pool.is_open[node]]
        self._changed_gpus[pool.gpu_type] += changes
        self._all_displaceable_gpus[pool.gpu_type] += sum([gpus for _, gpus in changes])

    def _displaceable_on(self, pool: Pool) -> NDArray[np.int64]:
        gpus, changes = self._displaceable_gpus[pool.gpu_type], self._changed_gpus[pool.gpu_type]
        if changes:
            nodes, added = zip(*changes, strict=True)
            np.add.at(gpus, list(nodes), added)
            changes.clear()
        return gpus

    def _may_stay(self, entry: QueueEntry) -> bool:
        return entry.place_is_there and self._has_room(pool_of(entry), entry.info.reservation_in_place)

    def _may_return(self, entry: QueueEntry, place: Reservation) -> bool:
        return self._may_stay(entry) and self._quotas.fits(self._use_of_place(entry, place))

    def _use_of_place(self, entry: QueueEntry, reservation: Reservation) -> Use:
        """What a running job takes of its quotas in its place, cut down as far as the mechanism may."""
        held = entry.held
        if held is None or not entry.job.quotas:
            return ()
        least = entry.info.cut_down
        if self._displaces and not entry.is_profile_run and entry not in self._on(held.pool).pinned:
            least = shares_of(held.assignments, entry.on(held.pool).proportional(node for node, _ in held.assignments))
        return self._round.quotas.of_reservation(entry, held.pool, least)

    def _has_room(self, pool: Pool, reservation: Reservation) -> bool:
        reservations = self._ledger(pool)
        if not reservations.fits(reservation):
            return False
        if reservations.floating == 0:
            return True
        reservations.take(reservation)
        enough = reservations.idle >= 0
        reservations.give_back(reservation)
        return enough

    # Newcomers

    def _place(self, entry: QueueEntry, pool: Pool) -> bool:
        if entry.held is not None and entry.held.pool is pool and self._returns(entry):
            return True
        selected, reservations = self._on(pool), self._ledger(pool)
        use = self._round.quotas.least_of_newcomer(entry, pool)
        if reservations.idle < entry.gpus or not self._quotas.fits(use):
            return False
        if floats(entry, pool):
            self._quotas.take(entry, use)
            reservations.floating += entry.gpus
            selected.floating.append(entry)
            return True
        assignments = choose_for(entry, pool, *room_to_reserve(entry, reservations))
        if assignments is None or not self._has_room(pool, entry.on(pool).reservation(assignments)):
            return False
        use = self._round.quotas.at(entry, pool, assignments)
        if not self._quotas.fits(use):
            return False
        self._quotas.take(entry, use)
        reservations.take(entry.on(pool).reservation(assignments))
        selected.assigned[entry] = assignments
        return True

    def _returns(self, entry: QueueEntry) -> bool:
        """Let a running job that was displaced stay after all, if its place is still free."""
        place = entry.info.reservation_in_place
        if not self._may_return(entry, place):
            return False
        self._ledger(pool_of(entry)).take(place)
        self._quotas.take(entry, self._use_of_place(entry, place))
        self._confirm(entry, place)
        return True

    def _enters_anywhere(self, entry: QueueEntry) -> bool:
        return super()._enters_anywhere(entry) and self._is_turned_away_no_more(entry)

    def enters_free(self, entry: QueueEntry) -> bool:
        """Give a job that waits GPUs that no other holds."""
        return super().enters_free(entry) and self._is_turned_away_no_more(entry)

    def _is_turned_away_no_more(self, entry: QueueEntry) -> bool:
        for selected in self._selected.values():
            if entry in selected.turned_away:
                selected.turned_away.remove(entry)
        return True

    def _why_not_now(self, entry: QueueEntry, pools: Sequence[Pool]) -> Reason:
        if entry.job.quotas and self._lacks_quota(entry, pools):
            return Reason.QUOTA_FULL
        for pool in pools:
            if not floats(entry, pool):
                self._on(pool).turned_away.append(entry)
        if entry.reserved and entry.job.running is None and self._would_fit(entry.without_reservations(), pools):
            return Reason.KEPT_FREE
        return not_now(entry, [one.reservations for one in self._selected.values()])

    def _lacks_quota(self, entry: QueueEntry, pools: Iterable[Pool]) -> bool:
        """A newcomer's quotas have too little left on each GPU type; notes which. A running job that lost its place to
        others gets a reason that names them instead."""
        uses = [self._round.quotas.least_of_newcomer(entry, pool) for pool in pools]
        if entry.job.running is not None or not uses or any(self._quotas.fits(use) for use in uses):
            return False
        self._quotas.note_full(entry, uses[0])
        return True

    def _would_fit(self, entry: QueueEntry, pools: Iterable[Pool]) -> bool:
        """There is room for the entry, which is barred from no node."""
        return any(
            self._ledger(pool).idle >= entry.gpus
            and choose_for(entry, pool, *room_to_reserve(entry, self._ledger(pool))) is not None
            for pool in pools
        )

    # Promoted jobs

    def _reserve_nodes(self, entry: QueueEntry) -> None:
        """Where none are reserved yet, reserve the nodes that are free for the entry first."""
        runs = {**self._held, **self._stay}
        found: list[tuple[NodeReservation, str]] = []
        for pool in fastest_first(entry, self._round.pools):
            if pool.gpu_type in self._node_reservations:
                continue
            held = [(one, reservation) for one, reservation in runs.items() if pool_of(one) is pool]
            nodes = nodes_to_reserve(entry, pool, self._ledger(pool), held)
            found += [(nodes, pool.gpu_type)] if nodes is not None else []
        if found:
            nodes, gpu_type = min(found, key=lambda one: one[0].release)
            self._node_reservations[gpu_type] = nodes

    # Displacing

    def _least_use(self, entry: QueueEntry, pool: Pool) -> Use | None:
        return self._round.quotas.least_of_newcomer(entry, pool) if self._could_fit(entry, pool) else None

    def _could_fit(self, entry: QueueEntry, pool: Pool) -> bool:
        """There are enough GPUs once every job that may be displaced is: a cheap no for most."""
        reservations = self._ledger(pool)
        if reservations.idle + self._all_displaceable_gpus[pool.gpu_type] < entry.gpus:
            return False
        if floats(entry, pool):
            return True
        after = reservations.left()[0] + self._displaceable_on(pool)
        rooms = np.where(free_to(entry, pool), after, 0)
        needs_one = entry.place(pool) == "consolidate"
        return bool((rooms.max() if needs_one else rooms.sum()) >= entry.gpus)

    def _may_fit_after(self, entry: QueueEntry, victim: QueueEntry, pool: Pool) -> bool:
        reservations = self._ledger(pool)
        if reservations.idle < entry.gpus:
            return False
        if floats(entry, pool) or entry.place(pool) != "consolidate":
            return True
        held = victim.held.assignments if victim.held is not None else ()
        return any(reservations.free_gpus[node] >= entry.gpus for node, _ in held)


def floats(entry: QueueEntry, pool: Pool) -> bool:
    """Any free GPUs of the pool will do for the entry, wherever they are."""
    if entry.pods_matter:
        return False
    is_free = entry.job.nodes is None and not entry.reserved.get(pool.gpu_type)
    anywhere = is_free and not entry.on(pool).hard
    return anywhere and (entry.gpus == 1 or entry.place(pool) not in ("consolidate", "pack"))
