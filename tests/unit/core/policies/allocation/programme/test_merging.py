"""Merged classes of equal jobs: the same optimum, a feasible allocation, and no merging where it would be wrong."""

import numpy as np
import pytest

from support.planner.allocation import drawn, problem
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.policies.max_min_fairness import objective, unit_throughput
from synergy_core.policies.allocation.problem import Problem, effective_throughput, within_bounds
from synergy_core.policies.allocation.programme.activities import activities, matrix
from synergy_core.policies.allocation.programme.programme import Programme
from synergy_core.policies.allocation.programme.symmetry import Merged, apart, merge


def _solved(made: Problem, merged: Merged) -> tuple[float, np.typing.NDArray[np.float64]]:
    programme = Programme(merged, made.workers, Budget())
    unit = unit_throughput(made)[merged.representative]
    point = programme.solve(base=np.zeros(len(unit)), direction=unit)
    x = within_bounds(made, matrix(made, activities(made), merged.spread(point.time)))
    return point.level, x


@pytest.mark.parametrize("seed", range(6))
def test_the_merged_programme_has_the_optimum_of_the_whole_one(seed: int) -> None:
    made = drawn(seed, 16, pairs=True, kinds=3)
    acts, keys = activities(made), unit_throughput(made)[:, None]
    merged, whole = merge(acts, keys), apart(acts, 16)
    assert len(merged.members) == len(np.unique(made.throughputs, axis=0))
    assert len(merged.activities) < len(acts) / 2
    level, x = _solved(made, merged)
    assert level == pytest.approx(_solved(made, whole)[0], rel=1e-8)
    assert objective(made, x) == pytest.approx(level, rel=1e-8)


def test_jobs_with_different_partners_are_not_merged_even_where_they_are_alike_alone() -> None:
    """Jobs 0 and 1 are equal alone, but only job 0 may share with job 2."""
    made = problem([[1.0], [1.0], [1.0]], [2], pairs=[(0, 2)], pair_throughputs=[[[0.9, 0.9]]])
    merged = merge(activities(made), np.zeros((3, 1)))
    assert merged.job_class.tolist() == [0, 1, 0]
    _, x = _solved(made, merged)
    assert effective_throughput(made, x) == pytest.approx(np.array([0.9, 1.0, 0.9]), abs=0.1)


def test_equal_partners_of_equal_jobs_are_merged_without_every_pair_being_there() -> None:
    """A ring of six equal jobs: each has two partners, and all are one class."""
    ring = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)]
    made = problem([[1.0]] * 6, [2], pairs=ring, pair_throughputs=[[[0.8, 0.8]]] * 6)
    merged = merge(activities(made), np.zeros((6, 1)))
    assert (len(merged.members), len(merged.activities)) == (1, 2)
    level, x = _solved(made, merged)
    assert effective_throughput(made, x) == pytest.approx(np.full(6, 2 * 2 * 0.8 / 6))
    assert level == pytest.approx(objective(made, x))


def test_which_of_two_is_named_first_in_a_pair_makes_no_difference() -> None:
    speeds = [[2.0], [2.0], [5.0], [5.0]]
    ends = [(0, 2), (3, 0), (1, 2), (3, 1)]
    shared = [[[1.5, 4.0]], [[4.0, 1.5]], [[1.5, 4.0]], [[4.0, 1.5]]]
    made = problem(speeds, [1], pairs=ends, pair_throughputs=shared)
    assert len(merge(activities(made), np.zeros((4, 1))).activities) == 3


def test_a_lopsided_pair_within_a_class_keeps_its_jobs_apart() -> None:
    """In the pair job 0 is the faster: the two are no longer alike."""
    made = problem([[1.0], [1.0]], [1], pairs=[(0, 1)], pair_throughputs=[[[0.9, 0.5]]])
    assert merge(activities(made), np.zeros((2, 1))).job_class.tolist() == [0, 1]


@pytest.mark.parametrize("seed", range(6))
def test_without_pairs_exactly_the_jobs_with_equal_numbers_are_a_class(seed: int) -> None:
    """Classes are numbered in the order of their first jobs, and keep the activities of these."""
    made = drawn(seed, 24, pairs=False, kinds=4)
    acts, keys = activities(made), unit_throughput(made)[:, None]
    merged = merge(acts, keys)
    numbers = np.concatenate([keys, made.scale[:, None], made.throughputs], axis=1)
    rows = [tuple(row) for row in numbers.tolist()]
    order = list(dict.fromkeys(rows))
    assert merged.job_class.tolist() == [order.index(row) for row in rows]
    assert merged.representative.tolist() == [rows.index(row) for row in order]
    assert merged.members.tolist() == [float(rows.count(row)) for row in order]
    look, of = merged.activities, merged.activity_class
    assert (
        look.first.tolist()
        == look.second.tolist()
        == merged.job_class[acts.row[np.unique(of, return_index=True)[1]]].tolist()
    )
    assert look.column[of].tolist() == acts.column.tolist()
    assert look.first[of].tolist() == merged.job_class[acts.first].tolist()
    assert (look.first_rate[of] == acts.first_rate).all()
    assert (look.scale[of] == acts.scale).all()
    assert merged.sizes.tolist() == np.bincount(of).tolist()


def test_a_zero_is_a_zero_whatever_its_sign() -> None:
    made = problem([[1.0], [1.0]], [1])
    assert merge(activities(made), np.array([[0.0], [-0.0]])).job_class.tolist() == [0, 0]
