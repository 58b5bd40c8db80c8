"""The allocation matrices of one caller's plans: the last one is used again while nothing has changed that the policy
looks at, and serves in place of a new one that is not found in time."""

from dataclasses import fields, replace

import numpy as np

from synergy_core.allocation import solve
from synergy_core.allocation.budget import Budget, OutOfTimeError
from synergy_core.allocation.policy import on_columns
from synergy_core.allocation.problem import Floats, Problem, within_bounds
from synergy_core.allocation.programme import SolverError
from synergy_core.allocation.shares import isolated_shares
from synergy_core.answer import SharesFrom

_TIMELESS = frozenset(
    {
        "fifo",
        "gandiva",
        "hierarchical",
        "isolated",
        "max-min-fairness",
        "max-min-fairness-water-filling",
        "max-throughput",
        "min-cost",
        "proportional",
    }
)
"""Policies that look neither at how many steps a job has left nor at how long it has been there."""

_Key = tuple[object, ...]


class Solutions:
    """What the last plan found."""

    def __init__(self) -> None:
        self.budget = Budget()
        """What the present plan may take."""
        self._key: _Key = ()
        self._again: Floats | None = None
        """What `_recalled` said of the last X and the same problem."""
        self._rows: dict[str, int] = {}
        self._columns: tuple[str, ...] = ()
        self._alone = np.zeros((0, 0))
        """The last X of jobs alone, by these jobs and columns."""
        self._pairs: dict[tuple[str, str], Floats] = {}
        """The same of pairs that are given time: C shares, in the order of `_columns`."""

    def last(self, job: str, column: str) -> float:
        """The share of a column that the last X gives a job alone; 0 where neither knew of the other."""
        if job not in self._rows or column not in self._columns:
            return 0.0
        return float(self._alone[self._rows[job], self._columns.index(column)])

    def shares(self, problem: Problem, policy: str, *, aware: bool) -> tuple[Floats, SharesFrom]:
        """X (J + P rows x C) of the policy, or what serves in its place.

        Raises FieldError for what cannot be solved. OutOfTimeError never leaves here.
        """
        timeless = policy in _TIMELESS
        if timeless:
            nothing = np.zeros(len(problem.jobs))
            problem = replace(problem, steps=nothing + np.nan, elapsed=nothing, isolated_elapsed=nothing)
        key = (policy, aware, *_values(problem))
        if timeless and key == self._key:
            if self._again is None:
                self._again = self._recalled(problem)
            return self._again, ""
        try:
            answer = solve(
                problem, policy, aware=aware, efficient=True, budget=self.budget, last=self._recalled(problem)
            )
        except (SolverError, OutOfTimeError):  # the solver's numbers failed it
            return self.stand_in(problem)
        if answer.status == "time-limit" and answer.note in ("the last allocation", "the isolated allocation"):
            return self.stand_in(problem)
        self._key = key if answer.status != "time-limit" else ()
        self._again = None
        self._rows = {job: row for row, job in enumerate(problem.jobs)}
        self._columns, self._alone = problem.columns, answer.x[: len(problem.jobs)]
        of_pairs = answer.x[len(problem.jobs) :]
        given = np.flatnonzero(of_pairs.any(axis=1))
        names = [(problem.jobs[one], problem.jobs[other]) for one, other in problem.pairs[given].tolist()]
        self._pairs = dict(zip(names, of_pairs[given], strict=True))
        return answer.x, "cut-short" if answer.status == "time-limit" else ""

    def stand_in(self, problem: Problem) -> tuple[Floats, SharesFrom]:
        """What serves where nothing new was found: the last X as far as it holds, else everybody's own part."""
        last = self._recalled(problem)
        if last.any():
            return last, "last"
        return on_columns(problem, isolated_shares(problem)), "isolated"

    def _recalled(self, problem: Problem) -> Floats:
        """The last X of the jobs and columns that are there still, within what is there now."""
        rows = [self._rows.get(job, -1) for job in problem.jobs]
        columns = [self._columns.index(name) if name in self._columns else -1 for name in problem.columns]
        with_none = np.pad(self._alone, ((0, 1), (0, 1)))
        x = np.concatenate([with_none[rows][:, columns], np.zeros((len(problem.pairs), len(problem.columns)))])
        if self._pairs and self._columns == problem.columns:
            for row, (one, other) in enumerate(problem.pairs.tolist(), start=len(problem.jobs)):
                shares = self._pairs.get((problem.jobs[one], problem.jobs[other]))
                if shares is not None:
                    x[row] = shares
        there = np.concatenate([problem.throughputs > 0, problem.pair_throughputs.max(axis=2) > 0])
        return within_bounds(problem, np.where(there & (problem.workers > 0)[problem.column_type], x, 0.0))


def _values(problem: Problem) -> _Key:
    """All that the problem says, to be compared."""
    values = (getattr(problem, item.name) for item in fields(problem))
    return tuple(value.tobytes() if isinstance(value, np.ndarray) else value for value in values)
