"""The order in which changes are written, and how many of them one pass writes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from synergy_api.amounts import Amounts
from synergy_extender.cluster.views import Key
from synergy_extender.decisions.changes import ChangeKind, StatusChange

REASONS_AT_ONCE: Final = 1000
POSITIONS_AT_ONCE: Final = 20
"""What one pass writes of new reasons for waiting, and of mere positions. The next pass must not wait long."""


def affordable(changes: Sequence[StatusChange], *, estimates: int = 0) -> list[StatusChange]:
    """All changes that runs depend on, and as many reasons and positions as are no burden, in the order given; of those
    that bring a new estimate and nothing else `estimates` at the most."""
    room = {
        ChangeKind.QUEUE: REASONS_AT_ONCE,
        ChangeKind.POSITION: POSITIONS_AT_ONCE,
        ChangeKind.ESTIMATE: estimates,
    }
    chosen = []
    for change in changes:
        if change.kind in room:
            room[change.kind] -= 1
            if room[change.kind] < 0:
                continue
        chosen.append(change)
    return chosen


def ordered(changes: Iterable[StatusChange]) -> list[StatusChange]:
    """The order of writing. Of the runs that stay, those on the nodes of a new place come before it: what they give up
    is written first. The others come after all that a job waits for (`waited_for`)."""
    found = sorted(changes, key=_position)
    entering = _nodes(change for change in found if change.kind is ChangeKind.ENTER)
    late = [change for change in found if change.kind is ChangeKind.STAY and entering.isdisjoint(_nodes([change]))]
    told = [change for change in found if change.kind > ChangeKind.ADMIT]
    behind = {change.job.key for change in (*late, *told)}
    first = [change for change in found if change.job.key not in behind]
    return [*in_turns(first), *in_turns(late), *in_turns(told)]


def waited_for(changes: Sequence[StatusChange]) -> int:
    """How many changes, of those in the order of writing, a job or its GPUs wait for: all but the last runs that stay,
    and what is only told."""
    count = len(changes)
    while count and (changes[count - 1].kind > ChangeKind.ADMIT or changes[count - 1].kind is ChangeKind.STAY):
        count -= 1
    return count


def still_good(earlier: Iterable[StatusChange], changes: Sequence[StatusChange]) -> list[StatusChange]:
    """Of the runs that stay, by earlier decisions that are not written: those that the new decisions allow. These were
    made as if the earlier ones did not exist: what a run would grow by may be given away."""
    changed = {change.job.key for change in changes}
    entering = _nodes(change for change in changes if change.kind is ChangeKind.ENTER)
    return [
        change
        for change in earlier
        if change.job.key not in changed and (entering.isdisjoint(_nodes([change])) or not _grows(change))
    ]


def _grows(change: StatusChange) -> bool:
    """Whether the run gets more CPU or memory on a node than its status says."""
    before = change.job.status.allocation
    held = {share.node: share for share in before.workers} if before is not None else {}
    return change.allocation is not None and any(
        share.node not in held or not Amounts.of(share).fits(Amounts.of(held[share.node]))
        for share in change.allocation.workers
    )


def _nodes(changes: Iterable[StatusChange]) -> set[str]:
    places = (change.allocation for change in changes)
    return {share.node for place in places if place is not None for share in (*place.workers, *place.planned)}


def in_turns(changes: Sequence[StatusChange]) -> list[StatusChange]:
    """Of each kind the first of every namespace, then the second of every one, and so on: many changes of one namespace
    do not hold up those of another."""
    seen = Counter[tuple[ChangeKind, str]]()
    turns: list[tuple[ChangeKind, int]] = []
    for change in changes:
        seen[change.kind, change.job.key.namespace] += 1
        turns.append((change.kind, seen[change.kind, change.job.key.namespace]))
    return [changes[index] for index in sorted(range(len(changes)), key=turns.__getitem__)]


def _position(change: StatusChange) -> tuple[int, int, Key]:
    position = change.queue.position if change.queue is not None else 0
    return change.kind, position, change.job.key
