"""The allocation matrices of one caller's plans.

The last matrix is used again while nothing has changed that the policy depends on. It also stands in for a new one that
is not found in time.
"""

from dataclasses import fields, replace

import numpy as np

from synergy_core.model.answer import SharesFrom
from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation.budget import Budget, OutOfTimeError
from synergy_core.policies.allocation.derived import Derived
from synergy_core.policies.allocation.policy import on_columns
from synergy_core.policies.allocation.problem import AllocationMatrix, Problem, time_used, within_bounds, within_most
from synergy_core.policies.allocation.programme.point import SolverError
from synergy_core.policies.allocation.shares import isolated_shares
from synergy_core.policies.allocation.solver import AtOnce, Solver, Sought

TIMELESS = frozenset(
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
        self.solver: Solver = AtOnce()
        """What looks for allocations; one that goes on when the budget ends is the caller's to set."""
        self.derived = Derived()
        """What callers have worked out from problems and matrices."""
        self._key: _Key = ()
        self._same: Problem | None = None
        """The last problem with that key."""
        self._again: Floats | None = None
        """What `_recalled` said of the last X and the same problem."""
        self._rows: dict[str, int] = {}
        self._columns: tuple[str, ...] = ()
        self._alone = np.zeros((0, 0))
        """The last X of jobs alone, by these jobs and columns."""
        self._pairs: dict[tuple[str, str], Floats] = {}
        """The same of pairs that are given time: C shares, in the order of `_columns`."""
        self._found: tuple[Problem, Floats] | None = None
        """The last X, and the problem that it was found for."""
        self._cut_short = False
        """Whether the last X is the best that was found when time ran out."""

    def last(self, job: str, column: str) -> float:
        """The share of a column that the last X gives a job alone; 0 where neither knew of the other."""
        if job not in self._rows or column not in self._columns:
            return 0.0
        return float(self._alone[self._rows[job], self._columns.index(column)])

    def shares(self, problem: Problem, policy: str, *, aware: bool) -> tuple[Floats, SharesFrom]:
        """X (J + P rows x C) of the policy, or what serves in its place.

        Raises FieldError for what cannot be solved. OutOfTimeError never leaves here.
        """
        timeless = policy in TIMELESS
        if timeless:
            problem = without_times(problem)
        sought = Sought(problem, policy, aware)
        late = self.solver.late()
        if late is not None and (late.sought.policy, late.sought.aware) == (policy, aware):
            self._keep(late.sought, late.answer)
        if timeless and self._is_same(sought):
            if self._again is None:
                self._again = self._recalled(problem)
            return self._again, ""
        try:
            answer = self.solver.solve(sought, self.budget)
        except (SolverError, OutOfTimeError):  # the solver's numbers failed it, or it needs longer
            return self.stand_in(problem)
        if answer.status == "time-limit" and self._rows and not self._cut_short:
            return self.stand_in(problem)  # one that was found in full, if for the jobs of a moment ago
        self._keep(sought, answer)
        return answer.x, "cut-short" if self._cut_short else ""

    def stand_in(self, problem: Problem) -> tuple[Floats, SharesFrom]:
        """What stands in where no new X was found: the last X as far as it holds, else each job's isolated share.

        Who was not there when the last X was found, or had more than half of its time in it with partners or on types
        that are gone, is given its own part beside it, and all are shrunk to what there is: however long no new X is
        found, no plan waits for it without any time.
        """
        own, last = on_columns(problem, isolated_shares(problem)), self._recalled(problem)
        if not last.any():
            return within_most(problem, own), "isolated"
        time = self._time()
        before = np.array([time.get(job, np.inf) for job in problem.jobs])
        own[: len(problem.jobs)][time_used(problem, last) >= 0.5 * before] = 0.0
        return within_most(problem, within_bounds(problem, last + own)), "cut-short" if self._cut_short else "last"

    def _is_same(self, sought: Sought) -> bool:
        """Whether the last X is of the same problem."""
        same = sought.problem is self._same and self._key[:2] == (sought.policy, sought.aware)
        if not same and self._key == _key(sought):
            self._same, same = sought.problem, True
        return same

    def _time(self) -> dict[str, float]:
        """The fraction of time in which each job runs by the last X."""
        if self._found is None:
            return {}
        problem, x = self._found
        return dict(zip(problem.jobs, time_used(problem, x).tolist(), strict=True))

    def _keep(self, sought: Sought, answer: AllocationMatrix) -> None:
        problem = sought.problem
        self._cut_short = answer.status == "time-limit"
        self._key = () if self._cut_short or sought.policy not in TIMELESS else _key(sought)
        self._again, self._same = None, None
        self._rows = {job: row for row, job in enumerate(problem.jobs)}
        self._columns, self._alone = problem.columns, answer.x[: len(problem.jobs)]
        self._found, self._pairs = (problem, answer.x), {}
        if not len(problem.pairs):
            return
        of_pairs = answer.x[len(problem.jobs) :]
        given = np.flatnonzero(of_pairs.any(axis=1))
        names = [(problem.jobs[one], problem.jobs[other]) for one, other in problem.pairs[given].tolist()]
        self._pairs = dict(zip(names, of_pairs[given], strict=True))

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
        x = np.where(there & (problem.workers > 0)[problem.column_type], x, 0.0)
        return within_most(problem, within_bounds(problem, x))


def without_times(problem: Problem) -> Problem:
    """The problem as `TIMELESS` policies see it; the same object where it says nothing of times."""
    if np.isnan(problem.steps).all() and not (problem.elapsed.any() or problem.isolated_elapsed.any()):
        return problem
    nothing, unknown = np.zeros(len(problem.jobs)), np.full(len(problem.jobs), np.nan)
    return replace(problem, steps=unknown, elapsed=nothing, isolated_elapsed=nothing)


def _key(sought: Sought) -> _Key:
    """All that an allocation depends on, to be compared."""
    values = (getattr(sought.problem, item.name) for item in fields(sought.problem))
    told = (value.tobytes() if isinstance(value, np.ndarray) else value for value in values)
    return (sought.policy, sought.aware, *told)
