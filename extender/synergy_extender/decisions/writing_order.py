"""The order in which changes are written, and how many of them one pass writes."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from synergy_extender.cluster.views import Key
from synergy_extender.decisions.changes import ChangeKind, StatusChange

REASONS_AT_ONCE: Final = 1000
POSITIONS_AT_ONCE: Final = 20
"""What one pass writes of new reasons for waiting, and of mere positions. Leases must be renewed by the next pass."""


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


def in_turns(changes: Sequence[StatusChange]) -> list[StatusChange]:
    """Of each kind the first of every namespace, then the second of every one, and so on: many changes of one namespace
    do not hold up those of another."""
    seen = Counter[tuple[ChangeKind, str]]()
    turns: list[tuple[ChangeKind, int]] = []
    for change in changes:
        seen[change.kind, change.job.key.namespace] += 1
        turns.append((change.kind, seen[change.kind, change.job.key.namespace]))
    return [changes[index] for index in sorted(range(len(changes)), key=turns.__getitem__)]


def writing_order(change: StatusChange) -> tuple[int, int, Key]:
    position = change.queue.position if change.queue is not None else 0
    return change.kind, position, change.job.key
