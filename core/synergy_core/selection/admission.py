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
* Where tenants have guarantees or limits, several passes are made over the queue (`tenancy.passes`).
"""

from abc import abstractmethod
from collections.abc import Sequence

from synergy_core.model.pool import Pool
from synergy_core.model.reasons import NEVER, Reason
from synergy_core.selection.diagnosis import could_run_at_once, never
from synergy_core.selection.kept_places import KeptPlaces, Likeness, likeness, pool_of
from synergy_core.selection.node_reservation import NodeReservation, reserved_from
from synergy_core.selection.queue_entry import QueueEntry, fastest_first
from synergy_core.selection.round import Round
from synergy_core.selection.tenancy.passes import borrow, claims, give_the_rest
from synergy_core.selection.tenancy.unmet import Holders

_OTHERS_MAY_PASS = NEVER | {Reason.QUOTA_FULL, Reason.TENANT_LIMIT, Reason.BORROWING_LIMIT, Reason.GUARANTEES_FIRST}
"""A job that waits for one of these reasons is in no other job's way."""


class AdmissionWalk(KeptPlaces):
    """One walk. Each entry of the queue is given to `stays`, and if that is False to `admit`."""

    def __init__(self, round_: Round, *, displaces: bool) -> None:
        super().__init__(round_, displaces=displaces)
        self._waiting: list[tuple[QueueEntry, Reason]] = []
        self._node_reservations: dict[str, NodeReservation] = {}
        """Nodes that are reserved for promoted jobs, by GPU type."""
        self._profile_gpus_held = 0
        self._fewest_gpus = 0 if round_.explain else round_.queue.fewest_gpus
        self._blocked = False
        """A job that no other may pass does not fit yet."""
        self._never: dict[Likeness, Reason | None] = {}
        self._holders_of: dict[tuple[int, str], tuple[tuple[int, int], Holders]] = {}
        """By tenant and GPU type, and at which state of the walk."""

    def _keep_places(self) -> None:
        super()._keep_places()
        self._profile_gpus_held = sum(entry.gpus for entry in self._held if entry.is_profile_run)

    # The strategy

    @abstractmethod
    def _why_not_now(self, entry: QueueEntry, pools: Sequence[Pool]) -> Reason:
        """Why a job that could run does not run now. `pools` are those that it may use."""

    @abstractmethod
    def _reserve_nodes(self, entry: QueueEntry) -> None:
        """Reserve nodes for a promoted job, where none are reserved yet."""

    @abstractmethod
    def _nothing_is_left(self, fewest_gpus: int) -> bool:
        """No job of at least so many GPUs can enter any more, nor be displaced."""

    # The walk

    def walk(self) -> None:
        """Walk the queue to its end, or until nothing is left where no job asks why it waits."""
        if self._has_tenants:
            self._walk_by_tenants()
            return
        for entry in self._round.queue:
            if self.stays(entry):
                continue
            # a profile run may need less than a share: try it even where no share is left
            if self.is_over() and not entry.is_profile_run:
                break  # only running jobs keep their places below
            self.admit(entry)
        self.confirm_the_rest()

    def _walk_by_tenants(self) -> None:
        self.serve_guarantees()
        borrow(self, self._round)
        if self._round.queue.passes:
            got = give_the_rest(self, self._round, [entry for entry, _ in self._waiting])
            self._waiting = [one for one in self._waiting if one[0].name not in got]
        self._waiting.sort(key=lambda one: one[0].rank)

    def serve_guarantees(self) -> list[QueueEntry]:
        """Let jobs run by the guarantees of their tenants; those, in the order in which they were served."""
        preempts = self._displaces and self._round.queue.preempts
        return claims(self, self._round, preempts=preempts) if self._round.tenants else []

    def is_over(self) -> bool:
        """Nothing is left that a job could get, and no job asks why it waits."""
        return not self._round.explain and self._nothing_is_left(self._fewest_gpus)

    def claim(self, entry: QueueEntry) -> bool:
        """Let a job stay or enter by a guarantee; else the borrowing pass comes to it."""
        if entry in self._held:
            return self._tenant_may_have(entry, pool_of(entry)) and self.stays(entry)
        if entry.is_profile_run and self._exceeds_profile_share(entry):
            return False
        if not self._enters(entry, fastest_first(entry, self._round.pools)):
            return False
        self._profile_gpus_held += entry.gpus if entry.is_profile_run else 0
        return True

    def enters_free(self, entry: QueueEntry) -> bool:
        """Give a job that waits GPUs that no other holds."""
        if entry.is_profile_run:
            return False
        return any(self._gets(entry, pool) for pool in fastest_first(entry, self._round.pools))

    def admit(self, entry: QueueEntry) -> bool:
        """Admit a newcomer, or note why it waits."""
        if self._node_reservations:
            entry = entry.barred_from(reserved_from(entry, self._node_reservations))
        reason = Reason.HEAD_OF_LINE if self._blocked and not entry.is_profile_run else self._try(entry)
        if reason is None:
            self._profile_gpus_held += entry.gpus if entry.is_profile_run else 0
            return True
        reason = self._why_never(entry) or reason
        blocks = reason not in _OTHERS_MAY_PASS
        if entry.goes_first and blocks:
            self._reserve_nodes(entry)
        self._blocked |= blocks and not entry.is_profile_run and not self._round.queue.passes
        self._waiting.append((entry, reason))
        return False

    def _try(self, entry: QueueEntry) -> Reason | None:
        if entry.is_profile_run and self._exceeds_profile_share(entry):
            return Reason.PROFILE_SHARE_USED
        pools = fastest_first(entry, self._round.pools)
        if self._enters(entry, pools):
            return None
        return (
            self._why_its_tenant_may_not(entry, pools)
            or self._why_it_has_no_guarantee(entry, pools)
            or self._why_not_now(entry, pools)
        )

    def _exceeds_profile_share(self, entry: QueueEntry) -> bool:
        return self._profile_gpus_held > 0 and self._profile_gpus_held + entry.gpus > self._round.profile_gpus

    def _why_its_tenant_may_not(self, entry: QueueEntry, pools: Sequence[Pool]) -> Reason | None:
        """A cap, or guarantees of others; notes the numbers."""
        if not self._has_tenants:
            return None
        left = {pool.gpu_type: self._not_decided(pool) for pool in pools}
        refusal = self.tenants.why(entry, left)
        if refusal is None:
            return None
        reason, self._quotas.full[entry.name] = refusal
        return reason

    def _why_it_has_no_guarantee(self, entry: QueueEntry, pools: Sequence[Pool]) -> Reason | None:
        """What holds the GPUs of a guarantee that has room for the job; notes the numbers."""
        if not self._has_tenants or not self._round.tenants.guarantees or entry.job.running is not None:
            return None
        for pool in pools:
            index = self.tenants.could_guarantee(entry, pool.gpu_type)
            found = None if index is None else self._holders(index, pool).reason(entry)
            if index is not None and found is not None:
                reason, kept = found
                self._quotas.full[entry.name] = {**self.tenants.facts(entry, index, pool.gpu_type), "kept": f"{kept}"}
                return reason
        return None

    def _holders(self, index: int, pool: Pool) -> Holders:
        """What holds GPUs of the pool that a tenant is guaranteed; made anew once a job has won or lost some."""
        state = self.tenants.decided, len(self._losses)
        known = self._holders_of.get((index, pool.gpu_type))
        if known is None or known[0] != state:
            others = [
                one
                for one in self._round.queue.running
                if self._has_place_on(one, pool)
                and not self.tenants.is_below(one, index)
                and not self.tenants.is_by_guarantee(one, pool.gpu_type)
            ]
            known = self._holders_of[index, pool.gpu_type] = state, Holders(self._ledger(pool), others, self._round)
        return known[1]

    def _has_place_on(self, entry: QueueEntry, pool: Pool) -> bool:
        """A running job has GPUs of the pool, and keeps them as far as the walk has come."""
        if entry.held is None or entry.held.pool is not pool:
            return False
        return entry in self._held or (self.tenants.is_decided(entry.name) and entry.name not in self._losses)

    def _enters(self, entry: QueueEntry, pools: Sequence[Pool]) -> bool:
        """First a place that no other holds on any of the pools, then one by displacing."""
        for pool in pools:
            if self._gets(entry, pool):
                return True
        return self._reclaims and any(self._displace(entry, pool) for pool in pools)

    def _why_never(self, entry: QueueEntry) -> Reason | None:
        if could_run_at_once(entry, self._round.pools):
            return None
        like = likeness(entry)
        if like not in self._never:
            self._never[like] = never(entry, self._round.pools)
        return self._never[like]

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
        return any(self._gets(anywhere, pool) for pool in fastest_first(entry, self._round.pools))
