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


class Line:
    """The time of all jobs laid end to end: what of a timetable is the same in each round."""

    def __init__(self, shares: Shares) -> None:
        first, self.row = _rows(shares.row)
        """E: number of each share's row, from the lowest."""
        row = self.row
        self.total = np.asarray(np.bincount(row, weights=shares.share), dtype=float)
        """R: the whole time of each row."""
        several = np.bincount(row) > 1
        self.begins = np.cumsum(several) * GOLDEN
        """R: jobs with the same split would all be due on one type at once: each starts elsewhere in its time."""
        # the largest jobs first, then by type, so that about as many are due on it in every round
        self.order = np.lexsort((several, _of_largest(shares, row), -shares.gpus[first]))
        """R: rows, as indices."""
        self.in_order = self.total[self.order]
        self.all_the_time = self.total >= 1.0 - _APART
        self.in_rows = np.lexsort((shares.type_, row))
        """E: shares by row and type, as indices."""
        self.ends = np.cumsum(shares.share[self.in_rows])
        self.starts = np.concatenate([[0.0], self.ends[:-1]])
        """E: where each share ends and begins if all lie end to end, in that order."""
        of = row[self.in_rows]
        self.of = of
        bounds = np.searchsorted(of, np.arange(len(self.total) + 1))
        self.row_starts = self.starts[bounds[:-1]]
        self.row_ends = self.ends[bounds[1:] - 1]
        """R: where each row begins and ends."""
        self.is_last = np.zeros(len(row), dtype=bool)
        self.is_last[bounds[1:] - 1] = True
        """E: the last share of its row, in that order."""


def in_turn(shares: Shares, number: int, *, follows: bool = False, line: Line | None = None) -> Ints:
    """E: the shares, as indices, in the order in which round `number` serves them.

    The order is: pressed shares; the one due share of each due job; the other shares of these jobs, for where the due
    one does not fit; the other jobs. Within each, the highest X / f is first. `follows`: X follows what jobs have had.
    `line` is what `Line` says of these shares, if that is known.
    """
    if is_accounting(number) and not follows:
        return np.lexsort((-shares.share, -shares.priority, ~shares.pressed))
    line = line or Line(shares)
    rows_due, due = due_shares(line, (number if follows else number - number // ACCOUNTING_EVERY) * GOLDEN % 1.0)
    if not follows:
        return np.lexsort((-shares.share, -shares.priority, ~rows_due, ~due, ~shares.pressed))
    # due ones by that share, others by all their time
    first = np.where(due, shares.share, line.total[line.row])
    return np.lexsort((-shares.share, -first, ~line.all_the_time[line.row], ~rows_due, ~due, ~shares.pressed))


def is_accounting(number: int) -> bool:
    """Whether the round is an accounting round: X / f alone decides."""
    return number % ACCOUNTING_EVERY == 0


_Mask = npt.NDArray[np.bool_]


def due_shares(line: Line, mark: float) -> tuple[_Mask, _Mask]:
    """E: the job of each share is due, and the share itself is: one of each due job. The first mark lies `mark` before
    the beginning of the line."""
    ends = np.cumsum(np.concatenate([[mark], line.in_order]))
    marks = np.floor(ends + _HAIR)
    due, at = line.all_the_time.copy(), np.empty(len(line.total))
    due[line.order] |= marks[1:] > marks[:-1]
    at[line.order] = np.ceil(ends[:-1]) - ends[:-1]
    at = (at / line.total + line.begins) % 1.0
    point = (line.row_starts + at * (line.row_ends - line.row_starts))[line.of]
    lies = np.empty(len(point), dtype=bool)
    lies[line.in_rows] = (line.starts <= point) & ((point < line.ends) | line.is_last)
    row_is_due = due[line.row]
    return row_is_due, row_is_due & lies


def _rows(rows: Ints) -> tuple[Ints, Ints]:
    """The first share of each row (R), and the number of each share's row (E), from the lowest up."""
    if (rows[1:] < rows[:-1]).any():
        _, first, row = np.unique(rows, return_index=True, return_inverse=True)
        return first, row
    begins = np.ones(len(rows), dtype=bool)
    begins[1:] = rows[1:] > rows[:-1]
    return np.flatnonzero(begins), np.cumsum(begins) - 1


def _of_largest(shares: Shares, row: Ints) -> Ints:
    """R: the type of which each row has the largest share."""
    type_ = np.zeros(int(row.max(initial=-1)) + 1, dtype=np.int64)
    ascending = np.argsort(shares.share, kind="stable")
    type_[row[ascending]] = shares.type_[ascending]  # the last one that is written stays
    return type_
