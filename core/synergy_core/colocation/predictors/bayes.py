"""Bayes' rule for very many weights, of which each observation has a few.

An observation is the sum of its weights, each times a number, and of noise. Weights are normal. A few are *common*:
many observations have them, or they depend on each other. All others are *private*: a few observations have each, and
before these it is 0 on average and independent of the rest.

Observations with a private weight in common form a group, as do those that others link. If the common weights are
known, groups are independent of each other. So the largest system that is solved is one group's, or that of the common
weights (Woodbury's identity), and the covariance of all weights is never needed. What 500 jobs kept beside two
references each, and these beside them, are 1,000 groups of two. Of jobs beside each other nearly all observations may
be one group.
"""

from dataclasses import dataclass

import numpy as np

from synergy_core.model.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Private:
    """Which private weights observations have."""

    observations: Ints
    weights: Ints
    """Beside each observation, the number of a weight that it has; sorted, each weight at least once."""
    factors: Floats
    variances: Floats
    """Of each weight."""


def learnt(common: Floats, covariance: Floats, private: Private, noise: float, rest: Floats) -> tuple[Floats, Floats]:
    """By how much the means of the common weights (C) and of the private ones change.

    `common` are the factors (N x C) and `covariance` (C x C) is of the common weights; `noise` is a variance. `rest`
    (N) is what was observed less what was expected.
    """
    solved = _solved(private, noise, np.column_stack([rest, common]))
    told = covariance @ (common.T @ solved)
    of_common: Floats = np.asarray(np.linalg.solve(np.eye(len(covariance)) + told[:, 1:], told[:, 0]), dtype=np.float64)
    left = solved[:, 0] - solved[:, 1:] @ of_common
    each = private.factors * left[private.observations]
    return of_common, private.variances * np.bincount(private.weights, each, minlength=len(private.variances))


def _solved(private: Private, noise: float, right: Floats) -> Floats:
    """`right` (N x M) divided by the covariance that the noise and the private weights give observations (N x N)."""
    group = _groups(private, len(right))
    sizes = np.bincount(group)
    order = np.argsort(group, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order)) - _starts(sizes)[group[order]]

    # the covariances within each group, row by row, one group after the other
    one, other = _with_one_weight(private)
    a, b = private.observations[one], private.observations[other]
    shared = private.variances[private.weights[one]] * private.factors[one] * private.factors[other]
    cells = _starts(sizes**2)[group[a]] + place[a] * sizes[group[a]] + place[b]
    within = np.bincount(cells, shared, minlength=int((sizes**2).sum()))

    solved = np.empty_like(right)
    first = first_cell = 0
    for size, count in zip(*(each.tolist() for each in np.unique(sizes, return_counts=True)), strict=True):
        who = order[first : first + count * size].reshape(count, size)
        covariance = within[first_cell : first_cell + count * size**2].reshape(count, size, size)
        solved[who] = np.linalg.solve(covariance + noise * np.eye(size), right[who])
        first, first_cell = first + count * size, first_cell + count * size**2
    return solved


def _groups(private: Private, count: int) -> Ints:
    """The number of each observation's group, from the smallest group to the largest."""
    above = list(range(count))

    def top(one: int) -> int:
        while above[one] != one:
            above[one] = one = above[above[one]]
        return one

    same = np.flatnonzero(private.weights[1:] == private.weights[:-1])
    for one, other in zip(private.observations[same].tolist(), private.observations[same + 1].tolist(), strict=True):
        above[top(one)] = top(other)
    number, sizes = np.unique([top(one) for one in range(count)], return_inverse=True, return_counts=True)[1:]
    rank = np.empty_like(sizes)
    rank[np.argsort(sizes, kind="stable")] = np.arange(len(sizes))
    return np.asarray(rank[number])


def _with_one_weight(private: Private) -> tuple[Ints, Ints]:
    """All two entries of `private` with the same weight, in either order, also each entry with itself."""
    uses = np.bincount(private.weights, minlength=len(private.variances))
    many = uses[private.weights]
    one = np.repeat(np.arange(len(many)), many)
    return one, np.arange(len(one)) - _starts(many)[one] + _starts(uses)[private.weights[one]]


def _starts(sizes: Ints) -> Ints:
    return np.cumsum(sizes) - sizes
