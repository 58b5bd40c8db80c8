"""Changes of a pass that no job waits for: they give way to a new job, and are written after it."""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from synergy_extender.cluster.views import Key
from synergy_extender.decisions.changes import ChangeKind, StatusChange
from synergy_extender.decisions.writing_order import still_good, waited_for

AT_ONCE: Final = 32
"""Changes between two looks for new jobs."""
LONGEST_S: Final = 5.0
"""For how long changes give way. After that all are written, however many jobs come."""


@dataclass(frozen=True, slots=True)
class Written:
    """Jobs whose change was dropped, and whether changes are left to the next pass."""

    dropped: list[Key]
    left: bool


class Backlog:
    """Writes the changes of one pass after another with `write`, which returns the jobs whose change it dropped.

    `arrivals` counts the jobs that have begun to wait for a place. `clock` gives monotonic seconds. A change that is
    left behind is written in a later pass of the same round, unless that changes the same job, or gives away what the
    job would grow by. A new round is planned from what is written: it says anew how each run goes on. What only tells
    people why a job waits is not kept: the next plan finds it anew.
    """

    def __init__(
        self,
        write: Callable[[Sequence[StatusChange]], Awaitable[list[Key]]],
        arrivals: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._arrivals = arrivals
        self._clock = clock
        self._left: list[StatusChange] = []
        self._since: float | None = None

    def forget(self) -> None:
        """Write nothing of earlier passes any more: another replica may have decided since."""
        self._left, self._since = [], None

    async def write(self, changes: Sequence[StatusChange], seen: int, *, new_round: bool) -> Written:
        """Write them in order. `seen` is how many arrivals the pass knew of; `new_round` says that it planned a round.
        Raises like `write`."""
        count = waited_for(changes)
        late = [*(() if new_round else still_good(self._left, changes)), *changes[count:]]
        self._left = _kept(late)  # also if writing fails
        dropped = await self._write(changes[:count])
        while late and not self._gives_way(seen):
            dropped += await self._write(late[:AT_ONCE])
            late = late[AT_ONCE:]
            self._left = _kept(late)
        if not late:
            self._since = None
        elif self._since is None:
            self._since = self._clock()
        return Written(dropped, bool(late))

    def _gives_way(self, seen: int) -> bool:
        if self._arrivals() == seen:
            return False
        return self._since is None or self._clock() - self._since < LONGEST_S


def _kept(changes: Sequence[StatusChange]) -> list[StatusChange]:
    return [change for change in changes if change.kind is ChangeKind.STAY]
