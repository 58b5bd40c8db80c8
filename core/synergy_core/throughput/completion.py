"""Matrix completion: a matrix of low rank from some of its entries (Gavel, section 6; Quasar's technique)."""

import numpy as np

from synergy_core.model.arrays import Floats

_RANK = 4
_PENALTY = 0.3
"""Weight of the factors' squares against the squared errors: entries are of the size of 1."""
_STEPS = 40


def completed(matrix: Floats) -> Floats:
    """The matrix (any x any) with its NaN entries filled in; entries that are known stay.

    Column means (of columns without an entry, the mean of all) and a product of rank 4 for what deviates from them,
    found by alternating least squares with a penalty. Deterministic. A row without an entry has the column means.
    Raises ValueError where no entry is known.
    """
    known = ~np.isnan(matrix)
    if not known.any():
        raise ValueError("no entry of the matrix is known; give at least one")
    count = known.sum(axis=0)
    means = np.where(count > 0, np.nansum(matrix, axis=0) / np.maximum(count, 1), float(matrix[known].mean()))
    rest = np.where(known, matrix - means, 0.0)
    # the leading directions of what is known are where the alternation begins
    columns = np.linalg.svd(rest, full_matrices=False)[2][:_RANK].T
    rows = np.zeros((len(matrix), columns.shape[1]))
    for _ in range(_STEPS):
        rows = _fitted(rest, known, columns)
        columns = _fitted(rest.T, known.T, rows)
    return np.asarray(np.where(known, matrix, means + rows @ columns.T))


def _fitted(rest: Floats, known: np.typing.NDArray[np.bool_], factors: Floats) -> Floats:
    """Of each row the weights of the factors that come closest to its known entries."""
    weights = known.astype(float)
    squares = np.einsum("ij,jk,jl->ikl", weights, factors, factors)
    squares += _PENALTY * np.eye(factors.shape[1])
    return np.asarray(np.linalg.solve(squares, (rest @ factors)[:, :, None])[:, :, 0])
