"""Which classes of jobs and activities are equitable: checked without trust in the hashes that found them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.planner.allocation import drawn, problem
from synergy_core.policies.allocation.problem import Problem
from synergy_core.policies.allocation.programme import symmetry
from synergy_core.policies.allocation.programme.activities import Activities, activities
from synergy_core.policies.allocation.programme.symmetry import Merged, apart, merge


def _equitable(acts: Activities, keys: Any, merged: Merged) -> bool:
    return symmetry._is_equitable(acts, np.array(keys, dtype=float), merged)


def _of_classes(acts: Activities, jobs: Sequence[int], kinds: Sequence[int]) -> Merged:
    """Jobs and activities merged as told, whether or not they are alike."""
    job_class, activity_class = np.array(jobs), np.array(kinds)
    chosen = np.unique(activity_class, return_index=True)[1]
    look = Activities(
        row=acts.row[chosen],
        column=acts.column[chosen],
        type_=acts.type_[chosen],
        scale=acts.scale[chosen],
        first=job_class[acts.first[chosen]],
        second=job_class[acts.second[chosen]],
        first_rate=acts.first_rate[chosen],
        second_rate=acts.second_rate[chosen],
        alone=int((chosen < acts.alone).sum()),
    )
    return Merged(
        job_class=job_class,
        members=np.bincount(job_class).astype(float),
        representative=np.unique(job_class, return_index=True)[1],
        activities=look,
        activity_class=activity_class,
        sizes=np.bincount(activity_class).astype(float),
    )


def _alone(*speeds: float, scale: Sequence[int] | None = None) -> Problem:
    return problem([[speed, 1.0] for speed in speeds], [2, 2], scale=scale or [1] * len(speeds))


def test_equal_jobs_may_be_merged_and_nothing_that_differs_may() -> None:
    """Activities by row: each job on both types."""
    kinds, jobs = [0, 1, 0, 1], [0, 0]
    alike = activities(_alone(3.0, 3.0))
    assert _equitable(alike, [[1.0], [1.0]], _of_classes(alike, jobs, kinds))
    assert not _equitable(alike, [[1.0], [2.0]], _of_classes(alike, jobs, kinds)), "keys"
    assert _equitable(alike, [[1.0], [2.0]], apart(alike, 2))
    faster = activities(_alone(3.0, 4.0))
    assert not _equitable(faster, [[1.0]] * 2, _of_classes(faster, jobs, kinds)), "speeds"
    wider = activities(_alone(3.0, 3.0, scale=[1, 2]))
    assert not _equitable(wider, [[1.0]] * 2, _of_classes(wider, jobs, kinds)), "workers"
    same_speed = activities(problem([[3.0, 3.0]] * 2, [2, 2]))
    assert not _equitable(same_speed, [[1.0]] * 2, _of_classes(same_speed, jobs, [0, 0, 0, 0])), "columns"
    assert not _equitable(same_speed, [[1.0]] * 2, _of_classes(same_speed, jobs, [0, 1, 1, 0])), "columns"
    assert _equitable(same_speed, [[1.0]] * 2, _of_classes(same_speed, jobs, [1, 0, 1, 0]))


def test_jobs_with_unequally_many_activities_of_a_class_are_not_alike() -> None:
    """The second job has a further type; the others' classes are told right."""
    made = problem([[3.0, 0.0], [3.0, 1.0], [3.0, 1.0]], [2, 2])
    acts = activities(made)  # (0, t0), (1, t0), (1, t1), (2, t0), (2, t1)
    assert not _equitable(acts, [[1.0]] * 3, _of_classes(acts, [0, 0, 0], [0, 0, 1, 0, 1]))
    assert _equitable(acts, [[1.0]] * 3, _of_classes(acts, [0, 1, 1], [0, 1, 2, 1, 2]))


def _paired(pairs: Sequence[tuple[int, int]], shared: Sequence[tuple[float, float]], jobs: int = 4) -> Activities:
    rates = [[[one, other]] for one, other in shared]
    return activities(problem([[1.0]] * jobs, [2], pairs=pairs, pair_throughputs=rates))


def test_pairs_of_two_classes_may_be_merged_whichever_end_is_named_first() -> None:
    acts = _paired([(0, 2), (3, 1)], [(0.9, 0.6), (0.6, 0.9)])
    turned = _of_classes(acts, [0, 0, 1, 1], [0, 0, 1, 1, 2, 2])
    keys = [[1.0], [1.0], [2.0], [2.0]]
    assert _equitable(acts, keys, turned)
    other_rates = _paired([(0, 2), (3, 1)], [(0.9, 0.6), (0.9, 0.6)])
    assert not _equitable(other_rates, keys, _of_classes(other_rates, [0, 0, 1, 1], [0, 0, 1, 1, 2, 2]))
    first_only = _paired([(0, 2), (1, 3)], [(0.9, 0.6), (0.8, 0.6)])
    assert not _equitable(first_only, keys, _of_classes(first_only, [0, 0, 1, 1], [0, 0, 1, 1, 2, 2]))
    second_only = _paired([(0, 2), (1, 3)], [(0.9, 0.6), (0.9, 0.5)])
    assert not _equitable(second_only, keys, _of_classes(second_only, [0, 0, 1, 1], [0, 0, 1, 1, 2, 2]))


def test_a_job_alone_and_a_pair_are_never_one_class() -> None:
    acts = _paired([(0, 1)], [(1.0, 1.0)], jobs=2)
    assert not _equitable(acts, [[1.0]] * 2, _of_classes(acts, [0, 0], [0, 0, 0]))
    assert _equitable(acts, [[1.0]] * 2, _of_classes(acts, [0, 0], [0, 0, 1]))


def test_jobs_of_a_class_are_in_equally_many_pairs_at_each_end() -> None:
    """A path of four equal jobs: those at its ends have one partner, the others two. In a ring all have two."""
    path = _paired([(0, 1), (1, 2), (2, 3)], [(0.9, 0.9)] * 3)
    assert not _equitable(path, [[1.0]] * 4, _of_classes(path, [0] * 4, [0] * 4 + [1] * 3))
    ring = _paired([(0, 1), (1, 2), (2, 3), (0, 3)], [(0.9, 0.9)] * 4)
    assert _equitable(ring, [[1.0]] * 4, _of_classes(ring, [0] * 4, [0] * 4 + [1] * 4))
    lopsided = _paired([(0, 1), (1, 2), (2, 3), (0, 3)], [(0.9, 0.7)] * 4)
    assert not _equitable(lopsided, [[1.0]] * 4, _of_classes(lopsided, [0] * 4, [0] * 4 + [1] * 4)), "0 is first twice"
    turning = _paired([(0, 1), (1, 2), (2, 3), (3, 0)], [(0.9, 0.7)] * 4)
    assert _equitable(turning, [[1.0]] * 4, _of_classes(turning, [0] * 4, [0] * 4 + [1] * 4))


def test_classes_are_numbered_as_they_first_occur_and_zero_has_no_sign() -> None:
    made = problem([[2.0], [5.0], [2.0], [5.0], [7.0]], [2])
    merged = merge(activities(made), np.array([[0.0], [0.0], [-0.0], [0.0], [0.0]]))
    assert merged.job_class.tolist() == [0, 1, 0, 1, 2]
    assert merged.representative.tolist() == [0, 1, 4]
    assert merged.members.tolist() == [2.0, 2.0, 1.0]
    assert merged.spread(np.array([1.0, 0.5, 0.25])).tolist() == [0.5, 0.25, 0.5, 0.25, 0.25]


def test_where_all_jobs_differ_nothing_is_merged() -> None:
    made = problem([[2.0], [2.0], [2.0]], [2])
    merged = merge(activities(made), np.arange(3.0)[:, None])
    assert merged.job_class.tolist() == [0, 1, 2]
    assert merged.activities is activities(made) or len(merged.activities) == 3
    assert merged.sizes.tolist() == [1.0] * 3


def test_where_a_hash_were_wrong_nothing_is_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symmetry, "_hash_rows", lambda rows: np.zeros(len(rows), dtype=np.uint64))
    acts = activities(_alone(3.0, 4.0, 5.0))
    merged = merge(acts, np.zeros((3, 1)))
    assert merged.job_class.tolist() == [0, 1, 2]
    assert merged.activities is acts


def test_hashes_of_a_million_rows_of_small_numbers_do_not_collide() -> None:
    """All sums and products of the digits meet often; so would those of a hash that only adds."""
    digits = np.stack(np.meshgrid(*[np.arange(20.0)] * 4), axis=-1).reshape(-1, 4)
    hashes = symmetry._hash_rows(digits)
    assert len(np.unique(hashes)) == len(digits)
    assert len(np.unique(hashes >> np.uint64(32))) >= 0.999 * len(digits)
    assert len(np.unique(hashes & np.uint64(2**32 - 1))) >= 0.999 * len(digits)


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), kinds=st.integers(1, 4), pairs=st.booleans())
def test_what_is_merged_is_as_coarse_as_the_kinds_of_jobs_and_no_coarser_than_is_right(
    seed: int, kinds: int, pairs: bool
) -> None:
    made = drawn(seed, 9, pairs=pairs, kinds=kinds)
    acts = activities(made)
    keys = np.stack([made.scale, made.weight], axis=1)
    merged = merge(acts, keys)
    assert _equitable(acts, keys, merged)
    looks = np.unique(np.concatenate([made.throughputs, keys], axis=1), axis=0, return_inverse=True)[1].ravel()
    if not pairs:
        assert len(merged.members) == len(set(looks.tolist()))
    of = merged.job_class
    assert all(len(set(looks[of == one].tolist())) == 1 for one in range(len(merged.members)))
    assert merged.sizes.sum() == len(acts)


def test_pairs_split_a_class_again_and_again() -> None:
    """A path of seven equal jobs: the ends first, then those beside them, and so on to the middle."""
    path = [(one, one + 1) for one in range(6)]
    acts = _paired(path, [(0.9, 0.9)] * 6, jobs=7)
    merged = merge(acts, np.zeros((7, 1)))
    assert merged.job_class.tolist() == [0, 1, 2, 3, 2, 1, 0]
    assert len(merged.activities) == 4 + 3
    assert _equitable(acts, np.zeros((7, 1)), merged)
    shorter = replace(acts, first_rate=acts.first_rate.copy())
    assert merge(shorter, np.zeros((7, 1))).members.tolist() == [2.0, 2.0, 2.0, 1.0]
