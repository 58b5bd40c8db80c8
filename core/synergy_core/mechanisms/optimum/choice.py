"""One option for each job, the best together: the integer programme of Synergy-Opt (Synergy, equations 1 to 4).

    maximise    sum_j sum_k value[j][k] * y[j][k]          (1)
    subject to  sum_j sum_k uses[j][k][r] * y[j][k] <= capacity[r]   for each row r   (2, 3)
                sum_k y[j][k] = 1                          for each job j    (4)
                y[j][k] is 0 or 1

Equation 5, no job below its fair speed, is a choice of options: with whole y it forbids those that are slower. A row is
whatever can run out: a resource of the super-machine, of the super-machine of a GPU type (appendix A.2), or of a node.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synergy_core.mechanisms.optimum.solver import modelling

_GAP = 1e-5
"""The answer is at most this fraction below the best."""
_MAX_NODES = 20_000
"""Branches to look at before the search takes the best answer so far. A count, not a time, gives the same answer on
every machine."""


@dataclass(frozen=True, slots=True)
class Option:
    """Something that a job may be given: what it is worth, and (row, amount) of what it takes."""

    value: float
    uses: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The option of each job, by index, and what they are worth together."""

    options: tuple[int, ...]
    value: float


def best_choice(options: Sequence[Sequence[Option]], capacity: Sequence[int]) -> Choice | None:
    """The best choice of one option for each job; None where there is none that fits.

    `options[j]` are those of job j, `capacity[r]` is what row r has. Amounts are integers of any size; the solver sees
    them as fractions of the row's capacity, and may overshoot that by its tolerance (a millionth): a caller that must
    keep the last unit checks.
    """
    if not options:
        return Choice((), 0.0)
    if any(not one for one in options):
        return None
    flat = [option for one in options for option in one]
    job_of = np.repeat(np.arange(len(options)), [len(one) for one in options])
    chosen = _solve(flat, job_of, capacity)
    if chosen is None:
        return None
    first = np.concatenate(([0], np.cumsum([len(one) for one in options])[:-1]))
    picks = tuple(
        int(np.argmax(chosen[start : start + len(one)])) for start, one in zip(first.tolist(), options, strict=True)
    )
    return Choice(picks, sum(one[pick].value for one, pick in zip(options, picks, strict=True)))


def _solve(
    flat: Sequence[Option], job_of: "np.ndarray[tuple[int], np.dtype[np.int64]]", capacity: Sequence[int]
) -> "np.ndarray[tuple[int], np.dtype[np.float64]] | None":
    cp, sparse = modelling()
    entries = [
        (row, column, amount / max(1, capacity[row]))
        for column, option in enumerate(flat)
        for row, amount in option.uses
        if amount > 0
    ]
    y = cp.Variable(len(flat), boolean=True)
    jobs = int(job_of[-1]) + 1
    one_each = sparse.csr_array((np.ones(len(flat)), (job_of, np.arange(len(flat)))), shape=(jobs, len(flat)))
    constraints = [one_each @ y == 1]
    if entries:
        rows, columns, parts = (list(column) for column in zip(*entries, strict=True))
        takes = sparse.csr_array((parts, (rows, columns)), shape=(len(capacity), len(flat)))
        constraints.append(takes @ y <= np.minimum(1.0, np.array(capacity, dtype=np.float64)))
    problem = cp.Problem(cp.Maximize(np.array([option.value for option in flat]) @ y), constraints)
    problem.solve(solver=cp.HIGHS, mip_rel_gap=_GAP, mip_max_nodes=_MAX_NODES, threads=1, random_seed=0)
    return None if y.value is None else np.asarray(y.value)
