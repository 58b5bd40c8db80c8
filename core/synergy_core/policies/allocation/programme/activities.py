"""The columns of every linear programme here: a job alone, or a pair of jobs, on a column of the problem."""

from dataclasses import dataclass

import numpy as np

from synergy_core.model.arrays import Floats, Ints
from synergy_core.policies.allocation.problem import Problem


@dataclass(frozen=True, slots=True, eq=False)
class Activities:
    """N things that workers can do, each for a fraction of the time.

    Those of jobs alone come first. `second` is `first` and `second_rate` 0 where a job is alone.
    """

    row: Ints
    """N: row of X."""
    column: Ints
    """N: column of X."""
    type_: Ints
    """N: type whose workers it takes."""
    scale: Floats
    """N: workers it takes at once."""
    first: Ints
    second: Ints
    """N: indices of the jobs."""
    first_rate: Floats
    second_rate: Floats
    """N: steps per second of each."""
    alone: int
    """How many of the first are of jobs alone."""

    def __len__(self) -> int:
        return len(self.row)


def activities(problem: Problem) -> Activities:
    """Everything that can be done: jobs alone where they have throughput, and the pairs that can help (`helpful`)."""
    open_ = problem.workers[problem.column_type] > 0
    job, column = np.nonzero((problem.throughputs > 0) & open_)
    if not len(problem.pairs):
        rates, nothing = problem.throughputs[job, column], np.zeros(len(job))
        return Activities(
            job, column, problem.column_type[column], problem.scale[job], job, job, rates, nothing, alone=len(job)
        )
    pair, pair_column = np.nonzero(helpful(problem))
    members, rates = problem.pairs[pair], problem.pair_throughputs[pair, pair_column]
    columns = np.concatenate([column, pair_column])
    return Activities(
        row=np.concatenate([job, len(problem.jobs) + pair]),
        column=columns,
        type_=problem.column_type[columns],
        scale=np.concatenate([problem.scale[job], problem.scale[members].max(axis=1)]),
        first=np.concatenate([job, members[:, 0]]),
        second=np.concatenate([job, members[:, 1]]),
        first_rate=np.concatenate([problem.throughputs[job, column], rates[:, 0]]),
        second_rate=np.concatenate([np.zeros(len(job)), rates[:, 1]]),
        alone=len(job),
    )


def helpful(problem: Problem) -> np.typing.NDArray[np.bool_]:
    """P x C: the pairs that can help on a column; all others are proved useless, whatever the policy.

    Let a and b run alone on the column at rates A, B > 0, and shared at a', b'. If a'/A + b'/B <= 1 then the time x
    that the pair is given is no better than x a'/A for a alone and x b'/B for b alone:

    * both have the same throughput as before: (x a'/A) A = x a';
    * their times do not grow: x a'/A <= x, and likewise for b;
    * the workers taken do not grow: x (a'/A s_a + b'/B s_b) <= x max(s_a, s_b), nor does the cost.

    So any allocation that uses such a pair can be replaced by one that does not, with equal throughputs, and every
    policy here looks at nothing else than throughputs and cost.
    """
    useful = np.zeros((len(problem.pairs), len(problem.columns)), dtype=bool)
    for column, type_ in enumerate(problem.column_type.tolist()):
        if problem.workers[type_] <= 0:
            continue
        shared = problem.pair_throughputs[:, column]
        alone = problem.throughputs[:, column][problem.pairs]
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = np.where(shared > 0, shared / alone, 0.0)
        useful[:, column] = kept.sum(axis=1) > 1.0
    return useful


def matrix(problem: Problem, acts: Activities, time: Floats) -> Floats:
    """X, rows x C, of the time given to each activity."""
    x = np.zeros((problem.rows, len(problem.columns)))
    x[acts.row, acts.column] = time
    return x
