"""The order in which one round serves the shares of an allocation matrix.

Usually a timetable decides. Lay the time of all jobs end to end on a line, and put marks on it at distances of 1. A job
is due if a mark lies on its time. It is due on the GPU type on whose part of its time the mark lies. From round to
round the marks move by the golden section. In any stretch of rounds every share then gets its part to within about one
round; as many jobs are due as the shares add up to; and no job is due on two types at once. Nothing has to be
remembered, and a new X is followed at once.

Not all due shares may fit: more may be due on a type than it has GPUs, or a job of eight GPUs finds no room beside
three of one. Then the highest X / f is served first, where f is the fraction of its life that a job has spent on the
type (Gavel, section 5). In the long run all jobs lack the same part of their shares. In every
`ACCOUNTING_EVERY`-th round, an accounting round, the order is X / f alone, whether a share is due or not.

An X that follows what jobs have had needs no such correction (makespan: a job that falls behind gets more). There the
order is: jobs that must run all the time, then the largest X.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synergy_core.model.arrays import Floats, Ints

ACCOUNTING_EVERY = 16
GOLDEN = 0.6180339887498949
"""The golden section."""
_APART = 1e-6
"""A share that lacks no more of 1 is all the time."""
_HAIR = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """E shares of the time on GPU types. Of equal ones the first is served first."""

    share: Floats
    """E: X."""
    priority: Floats
    """E: X / f."""
    gpus: Floats
    """E: GPUs of the job."""
    type_: Ints
    """E: index of the GPU type."""
    row: Ints
    """E: row of X. The shares of one job, or of one pair, on several types have the same row."""
    pressed: npt.NDArray[np.bool_]
    """E: served before all others."""


def in_turn(shares: Shares, number: int, *, follows: bool = False) -> Ints:
    """E: the shares, as indices, in the order in which round `number` serves them.

    The order is: pressed shares; the one due share of each due job; the other shares of these jobs, for where the due
    one does not fit; the other jobs. Within each, the highest X / f is first. `follows`: X follows what jobs have had.
    """
    if is_accounting(number) and not follows:
        return np.lexsort((-shares.share, -shares.priority, ~shares.pressed))
    timetable = _Timetable(shares, (number if follows else number - number // ACCOUNTING_EVERY) * GOLDEN % 1.0)
    first, rests = shares.priority, np.zeros(len(shares.share), dtype=bool)
    if follows:  # due ones by that share, others by all their time
        first, rests = np.where(timetable.is_due, shares.share, timetable.total), timetable.rests
    return np.lexsort((-shares.share, -first, rests, ~timetable.row_is_due, ~timetable.is_due, ~shares.pressed))


def is_accounting(number: int) -> bool:
    """Whether the round is an accounting round: X / f alone decides."""
    return number % ACCOUNTING_EVERY == 0


class _Timetable:
    """Which shares are due. The first mark lies `mark` before the beginning of the line."""

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
        at[line] = np.ceil(ends[:-1]) - ends[:-1]
        # jobs with the same split would all be due on one type at once: each starts at another point of its own time
        at = (at / total + np.cumsum(several) * GOLDEN) % 1.0
        self.row_is_due = due[row]
        """E: its job is due."""
        self.total = total[row]
        """E: the whole time of its job."""
        self.rests = (total < 1.0 - _APART)[row]
        """E: its job does not run all the time."""
        self.is_due = self.row_is_due & _lies_on(shares, row, total, at)
        """E: the share itself is due: one of each due job."""


def _of_largest(shares: Shares, row: Ints) -> Ints:
    """R: the type of which each row has the largest share."""
    type_ = np.zeros(int(row.max(initial=-1)) + 1, dtype=np.int64)
    ascending = np.argsort(shares.share, kind="stable")
    type_[row[ascending]] = shares.type_[ascending]  # the last one that is written stays
    return type_


def _lies_on(shares: Shares, row: Ints, total: Floats, at: Floats) -> npt.NDArray[np.bool_]:
    """E: a point of its row's time, `at` (R: 0 to 1), lies on this share."""
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
