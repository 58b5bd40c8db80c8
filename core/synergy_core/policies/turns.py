"""In what order the entries of an allocation matrix are served in a round.

Usually by a timetable. The shares X of a type are laid end to end on a line, and marks lie on it at distances of 1; a
job is due on the type if a mark lies on its share. From one round to the next the marks move by the golden section:
of any stretch of rounds every share has its part to within a round or so, and as many jobs are due as the shares add up
to. Nothing has to be remembered for that, and an X that changes is followed at once, whatever was served before.

Now and then, every `SETTLING` rounds, accounts are settled: highest X / f first, f being the fraction of a job's life
that it has spent on the type (Gavel, section 5). That makes up for what the timetable cannot give, since jobs of many
GPUs do not always fit beside others that are due.
"""

from collections.abc import Iterable, Sequence
from math import floor
from typing import Protocol, TypeVar

from synergy_core.model import Job

SETTLING = 16
_GOLDEN = 0.6180339887498949
_APART = 1e-6
"""A share that lacks no more of 1 is all the time."""
_HAIR = 1e-9


class Share(Protocol):
    """A job's share of the time on a GPU type."""

    @property
    def priority(self) -> float:
        """X / f."""

    @property
    def share(self) -> float:
        """X."""

    @property
    def job(self) -> Job:
        """Whose it is."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of its jobs: what tells it from all others on its type."""

    @property
    def gpu_type(self) -> str:
        """Where it is."""

    @property
    def pressed(self) -> bool:
        """Whether it comes before all others."""


_Share = TypeVar("_Share", bound=Share)


def in_turn(shares: Iterable[_Share], number: int) -> list[_Share]:
    """The shares in the order in which round `number` serves them.

    Before all others those that are pressed. By the timetable then who is due: first those that are to run all the
    time, as nothing could make up for a round that they lose, then by X / f; then the others, the largest X first.
    """
    owed = settled(shares)
    if settles(number):
        return owed
    due = _due(owed, (number - number // SETTLING) * _GOLDEN % 1.0)

    def place(one: _Share) -> tuple[object, ...]:
        is_due = _key(one) in due
        return (not one.pressed, not is_due, 0.0 if is_due and one.share < 1.0 - _APART else -one.share)

    return sorted(owed, key=place)


def settles(number: int) -> bool:
    """Whether a round settles accounts."""
    return number % SETTLING == 0


def settled(shares: Iterable[_Share]) -> list[_Share]:
    """The shares in the order in which a settling round serves them."""
    return sorted(
        shares,
        key=lambda one: (
            not one.pressed,
            -one.priority,
            -one.share,
            one.job.arrival_s,
            one.names,
            one.gpu_type,
        ),
    )


def _key(share: Share) -> tuple[tuple[str, ...], str]:
    return share.names, share.gpu_type


def _due(shares: Sequence[Share], mark: float) -> set[tuple[tuple[str, ...], str]]:
    """On each type the first mark lies `mark` before the line's first end of a share, and somewhat on for each type, so
    that a job's shares of several types are not due at once."""
    types = sorted({share.gpu_type for share in shares})
    due = set[tuple[tuple[str, ...], str]]()
    for place, gpu_type in enumerate(types):
        end = mark + place / len(types)
        for share in sorted(
            (one for one in shares if one.gpu_type == gpu_type),
            key=lambda one: (-one.job.gpus, one.job.arrival_s, one.names),
        ):
            start, end = end, end + share.share
            if share.share >= 1.0 - _APART or floor(end + _HAIR) > floor(start + _HAIR):
                due.add(_key(share))
    return due
