"""What an allocation policy is: how to find X, and what X is worth."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from synergy_core.model.arrays import Floats
from synergy_core.model.snapshot import FieldError
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.problem import Problem, within_bounds
from synergy_core.policies.allocation.programme.activities import Activities, activities, matrix
from synergy_core.policies.allocation.programme.bound_rows import bound_rows, members
from synergy_core.policies.allocation.programme.levels import Level
from synergy_core.policies.allocation.programme.programme import Programme
from synergy_core.policies.allocation.programme.symmetry import Merged, merge


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """An X (rows x C) within the constraints, and whether it is proved to be the best (see `Allocation.status`)."""

    x: Floats
    status: str = "optimal"
    note: str = ""
    value: float | None = None
    """What it is worth, where that does not follow from X."""


@dataclass(frozen=True, slots=True)
class Policy:
    """One objective. `allocate` may raise FieldError, SolverError and OutOfTimeError."""

    allocate: Callable[[Problem, Budget], Found]
    objective: Callable[[Problem, Floats], float]
    """What an X (rows x C) is worth, as the paper measures it."""
    normalisation: str
    solver: str = "HIGHS"
    less_is_better: bool = False
    shares: bool = True
    """Whether it can make use of pairs."""
    efficient: Callable[[Problem, Budget], Found] | None = None
    """What rounds follow: an optimum that leaves nothing that a job could use, where `allocate` does not
    promise that; or what its objective means for many jobs one after the other (`cost`)."""


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """A problem as its programme: activities, their classes, the solver."""

    problem: Problem
    acts: Activities
    merged: Merged
    programme: Programme

    def of_classes(self, values: Floats) -> Floats:
        """G values of J values that are equal within each class."""
        return np.asarray(values[self.merged.representative])

    def reached(self, level: Level, bound: float) -> Found:
        """What a level that was searched for says of the policy; `bound`: no X is worth more (or less) than that."""
        if level.proved:
            return Found(self.x(level.time))
        return Found(self.x(level.time), "time-limit", f"the best there may be is worth {bound:.6g}")

    def x(self, time: Floats) -> Floats:
        """X, rows x C, of the time of each class of activities (M)."""
        return within_bounds(self.problem, matrix(self.problem, self.acts, self.merged.spread(time)))


def setting(problem: Problem, budget: Budget, *keys: Floats) -> Setting:
    """The programme of a problem; `keys` (J each) is what the policy knows of a job beside what it can do where."""
    acts = activities(problem)
    jobs = len(problem.jobs)
    merged = merge(acts, np.stack([np.zeros(jobs), *keys, *members(problem.bounds, jobs)], axis=1))
    return Setting(
        problem, acts, merged, Programme(merged, problem.workers, budget, bound_rows(problem.bounds, merged))
    )


def steps_of(problem: Problem, policy: str) -> Floats:
    """J: steps remaining; raises FieldError for a job whose steps are not known."""
    for job in np.flatnonzero(np.isnan(problem.steps))[:1]:
        raise FieldError(f"jobs[{job}].steps_remaining", f"is missing; {policy} needs it of every job")
    return problem.steps


def on_columns(problem: Problem, shares: Floats) -> Floats:
    """X, rows x C, of shares of types (J x W): each in the type's faster placement, none where a job cannot run."""
    if len(problem.columns) == len(problem.types) and not len(problem.pairs):
        return np.where(problem.throughputs > 0, shares, 0.0)
    x = np.zeros((problem.rows, len(problem.columns)))
    jobs = np.arange(len(problem.jobs))
    for type_ in range(len(problem.types)):
        columns = np.flatnonzero(problem.column_type == type_)
        best = columns[np.argmax(problem.throughputs[:, columns], axis=1)]
        x[jobs, best] = np.where(problem.throughputs[jobs, best] > 0, shares[:, type_], 0.0)
    return x
