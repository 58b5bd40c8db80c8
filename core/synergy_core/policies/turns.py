"""In what order the entries of an allocation matrix are served in a round.

Usually by a timetable. The shares X of a type are laid end to end on a line, and marks lie on it at distances of 1; a
job is due on the type if a mark lies on its share. From one round to the next the marks move by the golden section:
of any stretch of rounds every share has its part to within a round or so, and as many jobs are due as the shares add up
to. Nothing has to be remembered for that, and an X that changes is followed at once, whatever was served before.

Now and then, every `SETTLING` rounds, accounts are settled: highest X / f first, f being the fraction of a job's life
that it has spent on the type (Gavel, section 5). That makes up for what the timetable cannot give, since jobs of many
GPUs do not always fit beside others that are due.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synergy_core.allocation.problem import Floats, Ints

SETTLING = 16
_GOLDEN = 0.6180339887498949
_APART = 1e-6
"""A share that lacks no more of 1 is all the time."""
_HAIR = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """E shares of the time on GPU types. Of those that are alike in all that counts the first comes first."""

    share: Floats
    """E: X."""
    priority: Floats
    """E: X / f."""
    gpus: Floats
    """E: GPUs of the job."""
    type_: Ints
    """E: index of the GPU type."""
    pressed: npt.NDArray[np.bool_]
    """E: whether it comes before all others."""


def in_turn(shares: Shares, number: int) -> Ints:
    """E: the shares, as indices, in the order in which round `number` serves them.

    Before all others those that are pressed. By the timetable then who is due: first those that are to run all the
    time, as nothing could make up for a round that they lose, then by X / f; then the others, the largest X first.
    """
    owed = np.lexsort((-shares.share, -shares.priority, ~shares.pressed))
    if settles(number):
        return owed
    due = _due(shares, (number - number // SETTLING) * _GOLDEN % 1.0)
    by_priority = due & (shares.share < 1.0 - _APART)
    place = np.where(by_priority, 0.0, -shares.share)
    return np.asarray(owed[np.lexsort((place[owed], ~due[owed], ~shares.pressed[owed]))])


def settles(number: int) -> bool:
    """Whether a round settles accounts."""
    return number % SETTLING == 0


def _due(shares: Shares, mark: float) -> npt.NDArray[np.bool_]:
    """On each type the first mark lies `mark` before the line's first end of a share, and somewhat on for each type, so
    that a job's shares of several types are not due at once. The largest jobs lie first."""
    due = np.zeros(len(shares.share), dtype=bool)
    types = np.unique(shares.type_).tolist()
    for place, type_ in enumerate(types):
        of_type = np.flatnonzero(shares.type_ == type_)
        line = of_type[np.argsort(-shares.gpus[of_type], kind="stable")]
        share = shares.share[line]
        ends = np.cumsum(np.concatenate([[mark + place / len(types)], share]))
        marked = np.floor(ends[1:] + _HAIR) > np.floor(ends[:-1] + _HAIR)
        due[line] = marked | (share >= 1.0 - _APART)
    return due
