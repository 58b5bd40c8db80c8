"""In what order the entries of an allocation matrix are served in a round.

Usually by a timetable. The time that each job is to run, on whatever types, is laid end to end on a line, and marks lie
on it at distances of 1; a job is due if a mark lies on its time, and on the type on whose share of it the mark lies.
From one round to the next the marks move by the golden section: of any stretch of rounds every share has its part to
within a round or so, as many jobs are due as the shares add up to, and none is due on two types at once. Nothing has to
be remembered for that, and an X that changes is followed at once, whatever was served before.

What is due does not always fit: a round may have more V100s due than there are, and a job of eight GPUs no room beside
three of one. Then the highest X / f comes first, f being the fraction of a job's life that it has spent on the type
(Gavel, section 5), so that in the long run each lacks the same part of its share. And now and then, every `SETTLING`
rounds, accounts are settled: highest X / f first, whoever is due.

An X that follows what jobs have had (makespan: a job that falls behind is given more) needs no accounts. There those
that are to run all the time come first, then the largest X: the end of the jobs that have no time to spare is what such
an X is about, and what others lose their next X makes up for.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synergy_core.model.arrays import Floats, Ints

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
    row: Ints
    """E: of X: what one job, or one pair of jobs, has on several types belongs together."""
    pressed: npt.NDArray[np.bool_]
    """E: whether it comes before all others."""


def in_turn(shares: Shares, number: int, *, follows: bool = False) -> Ints:
    """E: the shares, as indices, in the order in which round `number` serves them.

    Before all others those that are pressed. Then the one share of each job that is due; then other types of these
    jobs, for where theirs are taken; then the other jobs; each by X / f. `follows`: X follows what jobs have had.
    """
    if settles(number) and not follows:
        return np.lexsort((-shares.share, -shares.priority, ~shares.pressed))
    timetable = _Timetable(shares, (number if follows else number - number // SETTLING) * _GOLDEN % 1.0)
    first, rests = shares.priority, np.zeros(len(shares.share), dtype=bool)
    if follows:  # who is due by the share there, who looks for GPUs that are left by all its time
        first, rests = np.where(timetable.is_due, shares.share, timetable.total), timetable.rests
    return np.lexsort((-shares.share, -first, rests, ~timetable.row_is_due, ~timetable.is_due, ~shares.pressed))


def settles(number: int) -> bool:
    """Whether a round settles accounts."""
    return number % SETTLING == 0


class _Timetable:
    """Which shares are due. The first mark lies `mark` before the line's beginning."""

    def __init__(self, shares: Shares, mark: float) -> None:
        _, first, row = np.unique(shares.row, return_index=True, return_inverse=True)
        total = np.asarray(np.bincount(row, weights=shares.share), dtype=float)
        several = np.bincount(row) > 1
        # the largest jobs first, then by type, so that about as many are due on it in every round
        line = np.lexsort((several, _of_largest(shares, row), -shares.gpus[first]))
        ends = np.cumsum(np.concatenate([[mark], total[line]]))
        of_line = np.floor(ends[1:] + _HAIR) > np.floor(ends[:-1] + _HAIR)
        due, at = np.zeros(len(total), dtype=bool), np.zeros(len(total))
        due[line] = of_line | (total[line] >= 1.0 - _APART)
        at[line] = np.ceil(ends[:-1] - _HAIR) - ends[:-1]
        # jobs that are all split alike would all be due on one type at once: each begins elsewhere in its own time
        at = (at / total + np.cumsum(several) * _GOLDEN) % 1.0
        self.row_is_due = due[row]
        """E: whether its job is."""
        self.total = total[row]
        """E: all the time of its job."""
        self.rests = (total < 1.0 - _APART)[row]
        """E: whether its job is not to run all the time."""
        self.is_due = self.row_is_due & _lies_on(shares, row, total, at)
        """E: of each job that is due one."""


def _of_largest(shares: Shares, row: Ints) -> Ints:
    """R: the type of which each row has the largest share."""
    type_ = np.zeros(int(row.max(initial=-1)) + 1, dtype=np.int64)
    ascending = np.argsort(shares.share, kind="stable")
    type_[row[ascending]] = shares.type_[ascending]  # the last one that is written stays
    return type_


def _lies_on(shares: Shares, row: Ints, total: Floats, at: Floats) -> npt.NDArray[np.bool_]:
    """E: whether a point of its row's time, `at` (R: from 0 to 1 of it), is on this share."""
    in_rows = np.lexsort((shares.type_, row))
    ends = np.cumsum(shares.share[in_rows])
    begins = np.concatenate([[0.0], ends[:-1]])
    row = row[in_rows]
    first = np.searchsorted(row, row)
    last = np.searchsorted(row, row, side="right") - 1
    point = begins[first] + at[row] * (ends[last] - begins[first])
    found = np.zeros(len(row), dtype=bool)
    found[in_rows] = (begins <= point) & ((point < ends) | (np.arange(len(row)) == last))
    return found
