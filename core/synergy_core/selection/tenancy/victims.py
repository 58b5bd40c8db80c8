"""Which running jobs lose their places for a newcomer, where tenants have guarantees or limits."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from synergy_core.selection.queue_entry import QueueEntry
from synergy_core.selection.round import Round
from synergy_core.selection.tenancy.ledger import TenantLedger


class Victims:
    """The jobs that may be displaced at one moment of a walk. `preempts`: the mechanism displaces jobs at all."""

    def __init__(self, tenants: TenantLedger, round_: Round, *, preempts: bool) -> None:
        self._tenants = tenants
        self._round = round_
        self._preempts = preempts

    def of(
        self, newcomer: QueueEntry, lines: Iterable[Sequence[QueueEntry]], is_kept: Callable[[QueueEntry], bool]
    ) -> Iterator[QueueEntry]:
        """Of jobs on one pool, by tenant in the order of the queue, those that may be displaced for the newcomer.

        First of the tenant that borrows most, and of its jobs the lowest in the queue. What tenants borrow is looked up
        again after each: the caller takes it away. Jobs that keep no place there (`is_kept`) are left out.
        """
        by_index = list(lines)
        ends = {index: len(line) for index, line in enumerate(by_index)}
        while ends:
            open_ = []
            for index in list(ends):
                line, end = by_index[index], ends[index]
                while end and not is_kept(line[end - 1]):
                    end -= 1
                ends[index] = end
                if end and self.may_be(newcomer, line[end - 1]):
                    open_.append(index)
                else:
                    del ends[index]
            if open_:
                most = max(open_, key=lambda one: self._order(by_index[one][ends[one] - 1], newcomer))
                ends[most] -= 1
                yield by_index[most][ends[most]]

    def _order(self, victim: QueueEntry, newcomer: QueueEntry) -> tuple[tuple[float, ...], int]:
        return self._borrowed(victim, newcomer), victim.rank

    def may_be(self, newcomer: QueueEntry, victim: QueueEntry) -> bool:
        """Whether the victim may be displaced for the newcomer."""
        of_newcomer, of_victim = (self._tenants.tree.paths(one.job)[0] for one in (newcomer, victim))
        by_policy = self._preempts and victim.may_be_displaced
        if self._tenants.takes_by_guarantee(newcomer, victim):
            apart = next(at for at, index in enumerate(of_victim) if index not in of_newcomer)
            return any(self._borrowed(victim, newcomer)[apart:])
        if of_newcomer == of_victim or not self._round.fair or newcomer.is_ahead:
            return by_policy and victim.rank > newcomer.rank
        return by_policy and self._borrowed(victim, newcomer) > self._borrowed(newcomer, newcomer, victim)

    def _borrowed(
        self, entry: QueueEntry, newcomer: QueueEntry, on_type_of: QueueEntry | None = None
    ) -> tuple[float, ...]:
        where = entry if on_type_of is None else on_type_of
        gpu_type = "" if where.held is None else where.held.pool.gpu_type
        return self._tenants.borrowed_now(entry, gpu_type, newcomer)
