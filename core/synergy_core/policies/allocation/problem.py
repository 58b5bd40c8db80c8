"""What an allocation policy reads and answers (Gavel, section 3.1), as arrays.

J jobs, P pairs of jobs, C columns, W worker types. A column is a worker type, or a placement on it: a job's workers
spread over servers (`v100_unconsolidated`) are a column of their own that takes the workers of `v100`.

A `Problem` is checked where it is made (`check`); policies trust it.
"""

import re
from dataclasses import dataclass

import numpy as np

from synergy_core.model.arrays import Floats, Ints
from synergy_core.model.snapshot import FieldError, Tenant

UNCONSOLIDATED = "_unconsolidated"
"""Ending of the name of a column: workers of the type before it, on servers of their own."""
WITHIN = "_within_"
"""In the name of a column between a type and how many domains its servers share."""
_PLACED = re.compile(rf"({UNCONSOLIDATED}|{WITHIN}[1-9])$")


def type_of(column: str) -> str:
    """The name of the type whose workers a column takes."""
    return _PLACED.sub("", column)


@dataclass(frozen=True, slots=True)
class Bound:
    """What some jobs together may have of the workers of a type, on average over time."""

    type_: int
    jobs: tuple[int, ...]
    least: float
    """What they have at least: an allocation that gives all of them that exists."""
    most: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """Jobs, what they would do on each worker type, and the workers there are. Times are in seconds."""

    types: tuple[str, ...]
    workers: Floats
    """W: workers of each type."""
    columns: tuple[str, ...]
    """C names; the first W are the types themselves."""
    column_type: Ints
    """C: index of the type whose workers a column takes."""
    jobs: tuple[str, ...]
    """J ids, in the order in which ties are broken."""
    throughputs: Floats
    """J x C: steps per second of the job with all its workers; 0 where it is never placed."""
    scale: Floats
    """J: workers that a job takes at once (scale_factor)."""
    weight: Floats
    """J: at least a hair above 0."""
    steps: Floats
    """J: steps remaining; NaN where not known."""
    elapsed: Floats
    """J: t_m, time since start."""
    isolated_elapsed: Floats
    """J: the time that what was done so far would have taken on one nth of the cluster (t_m^isolated)."""
    arrival: Floats
    """J."""
    slo: Floats
    """J: seconds from now until the job should be done; infinite without an SLO."""
    tenant: Ints
    """J: index into `tenants`; -1: the job is a tenant of its own, with the job's weight."""
    cost: Floats
    """W: price of a worker per hour; NaN where not given."""
    pairs: Ints
    """P x 2: indices of two jobs that may share their workers."""
    pair_throughputs: Floats
    """P x C x 2: steps per second of each of the two while they share; 0 for both where they cannot."""
    tenants: tuple[Tenant, ...] = ()
    bounds: tuple[Bound, ...] = ()
    """Kept by the policies that solve a programme and see types; the others keep what is `most` only."""
    seed: int = 0
    """Of the policies that draw (Gandiva's packing)."""

    @property
    def rows(self) -> int:
        """Rows of X: jobs, then pairs."""
        return len(self.jobs) + len(self.pairs)

    def row_scale(self) -> Floats:
        """Workers that each row of X takes at once: of a pair, those of its larger job."""
        if not len(self.pairs):
            return self.scale
        return np.concatenate([self.scale, self.scale[self.pairs].max(axis=1)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AllocationMatrix:
    """The answer: the fraction of time that each row spends in each column until the next answer."""

    x: Floats
    """(J + P) x C."""
    objective: float
    """In the paper's own terms and direction, of this `x`."""
    status: str
    """`optimal`; `time-limit`: the best that was found when time ran out (`note` says how good it could be at most,
    where that is known); `heuristic`: a policy that optimises nothing, or nothing exactly."""
    solver: str
    """What found it: `HIGHS`, `CLARABEL`, `SCIPY`, or `closed-form`."""
    normalisation: str
    """What the objective is measured in, where the paper leaves that open."""
    note: str = ""


def effective_throughput(problem: Problem, x: Floats) -> Floats:
    """throughput(m, X) of each job in steps per second, pairs included (section 3.1)."""
    jobs = len(problem.jobs)
    alone: Floats = np.einsum("jc,jc->j", problem.throughputs, x[:jobs])
    if len(problem.pairs):
        shared = np.einsum("pcm,pc->pm", problem.pair_throughputs, x[jobs:])
        alone += np.bincount(problem.pairs.ravel(), weights=shared.ravel(), minlength=jobs)
    return alone


def time_used(problem: Problem, x: Floats) -> Floats:
    """Fraction of time in which each job runs, alone or shared: at most 1."""
    jobs = len(problem.jobs)
    used: Floats = x[:jobs].sum(axis=1)
    if len(problem.pairs):
        used = used + np.bincount(problem.pairs.ravel(), weights=np.repeat(x[jobs:].sum(axis=1), 2), minlength=jobs)
    return used


def workers_used(problem: Problem, x: Floats) -> Floats:
    """Workers of each type that are taken on average over time: at most `workers`."""
    by_column = problem.row_scale() @ x
    return np.asarray(np.bincount(problem.column_type, weights=by_column, minlength=len(problem.types)), dtype=float)


def within_bounds(problem: Problem, x: Floats) -> Floats:
    """`x` without what a solver's tolerance left beyond the constraints (1) to (3): shrunk by that much at most."""
    x = np.maximum(x, 0.0)
    over = max(time_used(problem, x).max(initial=0.0), 1.0)
    used = workers_used(problem, x)
    some = problem.workers > 0
    over = max(over, (used[some] / problem.workers[some]).max(initial=0.0))
    return np.asarray(x / over)


def within_most(problem: Problem, x: Floats) -> Floats:
    """`x` with less time for jobs that have more of a type than a bound allows."""
    for bound in problem.bounds:
        concerned = np.zeros(len(problem.jobs), dtype=bool)
        concerned[list(bound.jobs)] = True
        rows = np.concatenate([concerned, concerned[problem.pairs].any(axis=1)])
        columns = problem.column_type == bound.type_
        used = float(problem.row_scale()[rows] @ x[rows][:, columns].sum(axis=1))
        if used > bound.most:
            x = np.where(rows[:, None] & columns, x * (bound.most / used), x)
    return x


def check(problem: Problem) -> None:
    """Raise FieldError for the first value that no policy can use; the path is that of the JSON form."""
    if not problem.types:
        raise FieldError("workers", "is empty; name at least one worker type with its number of workers")
    if problem.workers.sum() <= 0:
        raise FieldError("workers", "there is no worker at all; give at least one type a number above 0")
    if not problem.jobs:
        raise FieldError("jobs", "is empty; there is nothing to allocate")
    usable = problem.throughputs * (problem.workers[problem.column_type] > 0)
    if not _is_good(problem, usable):
        _find_bad(problem, usable)
    for index, tenant in enumerate(problem.tenants):
        if not tenant.weight > 0:
            raise FieldError(f"tenants[{index}].weight", f"must be above 0, is {tenant.weight:g}")


def _is_good(problem: Problem, usable: Floats) -> bool:
    """Whether the jobs' values can be used: at a glance, before each is looked at."""
    least = np.stack([problem.scale - 1.0, problem.elapsed, problem.isolated_elapsed, problem.throughputs.min(axis=1)])
    most = np.stack([problem.weight, problem.slo, usable.max(axis=1)])
    return bool(least.min() >= 0.0 and most.min() > 0.0 and not (problem.steps < 0.0).any())


def _find_bad(problem: Problem, usable: Floats) -> None:
    """Raise FieldError for the first value of a job that no policy can use."""
    _above(problem.scale, "scale_factor", least=1.0)
    _above(problem.weight, "weight", strictly=True)
    for values, name in ((problem.elapsed, "time_since_start"), (problem.isolated_elapsed, "isolated_time")):
        _above(values, name)
    known = ~np.isnan(problem.steps)
    _above(np.where(known, problem.steps, 0.0), "steps_remaining")
    for job in np.flatnonzero(problem.slo <= 0)[:1]:
        raise FieldError(
            f"jobs[{job}].slo_s", f"is in the past ({problem.slo[job]:g}); give the seconds from now, or null for none"
        )
    for job in np.flatnonzero((problem.throughputs < 0).any(axis=1))[:1]:
        raise FieldError(f"jobs[{job}].throughputs", "must not be negative")
    for job in np.flatnonzero(usable.max(axis=1) <= 0)[:1]:
        raise FieldError(
            f"jobs[{job}].throughputs",
            f"all are 0 on the types that have workers, so job {problem.jobs[job]!r} could never run; "
            "give at least one above 0 or leave the job out",
        )


def _above(values: Floats, name: str, *, least: float = 0.0, strictly: bool = False) -> None:
    bad = ~(values > least) if strictly else ~(values >= least)
    for job in np.flatnonzero(bad)[:1]:
        bound = f"above {least:g}" if strictly else f"at least {least:g}"
        raise FieldError(f"jobs[{job}].{name}", f"must be {bound}, is {values[job]:g}")
