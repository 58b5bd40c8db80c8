"""Gandiva's random packing: where a pair runs, and who stays packed."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from support.planner.allocation import problem
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.problem import Problem


def test_a_pair_runs_where_it_helps_and_nobody_waits_for_a_type_it_cannot_use() -> None:
    made = problem(
        [[4.0, 2.0], [4.0, 2.0], [4.0, 0.0]],
        [1, 1],
        pairs=[(0, 1)],
        pair_throughputs=[[[3.0, 3.0], [1.0, 0.5]]],
    )
    found = solve(made, "gandiva")
    assert found.x[3] == pytest.approx([1.0 - found.x[2, 0], 0.0]), "packed it has the V100's time that is left"
    assert found.x[2] == pytest.approx([0.5, 0.0])


def _crowd(jobs: int) -> Problem:
    """All want the one GPU, and any two of them gain by sharing it."""
    pairs = list(combinations(range(jobs), 2))
    return problem([[1.0]] * jobs, [1], pairs=pairs, pair_throughputs=[[[0.9, 0.9]]] * len(pairs))


def _packed(made: Problem, seed: int = 0) -> set[frozenset[str]]:
    x = solve(replace(made, seed=seed), "gandiva").x[len(made.jobs) :]
    return {frozenset(made.jobs[job] for job in made.pairs[row]) for row in np.flatnonzero(x.any(axis=1)).tolist()}


def test_who_is_packed_stays_so_when_another_comes() -> None:
    before, after = _packed(_crowd(8)), _packed(_crowd(9))
    assert len(before) == 4
    assert len(after) == 4
    assert len(before & after) >= 2


def test_the_draw_is_the_seeds() -> None:
    assert len({frozenset(_packed(_crowd(8), seed)) for seed in range(8)}) >= 4


def test_every_job_has_the_same_part_of_the_workers_time() -> None:
    made = problem([[1.0]] * 4, [4], scale=[4.0, 1.0, 1.0, 1.0])
    x = solve(made, "gandiva").x
    assert x[:, 0] == pytest.approx([0.25, 1.0, 1.0, 1.0])
