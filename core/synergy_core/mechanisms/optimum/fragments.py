"""On which nodes jobs of given demands go, with few of them split: the second linear programme of Synergy-Opt.

(Synergy, section 4.1.2 and appendix A.1.3, equations 8 to 12.) x[i][j] is the part of job j on node i:

    sum_j gpus[j] * x[i][j] <= room[i]                     for each node i
    sum_j demand[j][d] * x[i][j] <= free[i][d] + over[i][d]    for each node i and resource d
    sum_i x[i][j] = 1                                      for each job j
    x >= 0, over >= 0, and the sum of over, each as a fraction of what a node has, as small as can be

A vertex of this polytope has at most as many fragmented jobs as there are rows for nodes, (1 + other resources) times
the nodes: the paper's 3s (theorem A.2; a positive `over` only takes the place of a fragment). `over` is 0 where the
demands fit in parts; it is there because the jobs that stay where they are may leave too little on single nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synergy_core.mechanisms.optimum.solver import modelling
from synergy_core.model.resources import Vector

_PART = 1e-6
"""Parts smaller than this are the solver's rounding."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A job to be laid on nodes: its demand as a whole."""

    gpus: int
    amounts: Vector
    allowed: NDArray[np.bool_]
    """Which nodes it may use."""


def parts(pieces: Sequence[Piece], room: NDArray[np.int64], free: NDArray[np.int64]) -> list[dict[int, float]] | None:
    """For each job its part on each node (node: part), those above zero; None where the GPUs do not suffice.

    `room[i]` are the GPUs of node i, `free[i]` (nodes x dimensions) what it has beside them; less than nothing counts
    as nothing.
    """
    if not pieces:
        return []
    where = [np.flatnonzero(piece.allowed & (room > 0)) for piece in pieces]
    if any(nodes.size == 0 for nodes in where):
        return None
    x = _vertex(pieces, where, np.maximum(room, 0), np.maximum(free, 0))
    if x is None:
        return None
    found = []
    start = 0
    for nodes in where:
        values = x[start : start + nodes.size]
        found.append({int(node): float(part) for node, part in zip(nodes, values, strict=True) if part > _PART})
        start += nodes.size
    return found


def _vertex(
    pieces: Sequence[Piece], where: Sequence[NDArray[np.int64]], room: NDArray[np.int64], free: NDArray[np.int64]
) -> NDArray[np.float64] | None:
    cp, sparse = modelling()
    nodes, dimensions = free.shape
    node_of = np.concatenate(where)
    job_of = np.repeat(np.arange(len(pieces)), [one.size for one in where])
    columns = np.arange(node_of.size)
    scale = np.maximum(1, free.max(axis=0)).astype(np.float64)
    x = cp.Variable(node_of.size, nonneg=True)
    over = cp.Variable(nodes * dimensions, nonneg=True)
    whole = sparse.csr_array((np.ones(node_of.size), (job_of, columns)), shape=(len(pieces), node_of.size))
    gpus = np.array([piece.gpus for piece in pieces], dtype=np.float64)
    on_nodes = sparse.csr_array((gpus[job_of], (node_of, columns)), shape=(nodes, node_of.size))
    constraints = [whole @ x == 1, on_nodes @ x <= room.astype(np.float64)]
    for dimension in range(dimensions):
        amounts = np.array([piece.amounts[dimension] for piece in pieces], dtype=np.float64) / scale[dimension]
        takes = sparse.csr_array((amounts[job_of], (node_of, columns)), shape=(nodes, node_of.size))
        more = over[dimension * nodes : (dimension + 1) * nodes]
        constraints.append(takes @ x <= free[:, dimension] / scale[dimension] + more)
    problem = cp.Problem(cp.Minimize(cp.sum(over)), constraints)
    problem.solve(solver=cp.HIGHS, threads=1, random_seed=0, highs_options={"solver": "simplex"})
    return None if x.value is None else np.asarray(x.value)
