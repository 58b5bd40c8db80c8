"""What a problem and an allocation matrix say: throughputs, time and workers used, bounds, and refusals."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.planner.allocation import problem, with_placements
from synergy_core.model.snapshot import FieldError, Tenant
from synergy_core.policies.allocation.policy import on_columns
from synergy_core.policies.allocation.problem import (
    Problem,
    check,
    effective_throughput,
    time_used,
    within_bounds,
    workers_used,
)
from synergy_core.policies.allocation.shares import (
    best_throughputs,
    equal_share_throughput,
    fastest_throughput,
    isolated_shares,
    isolated_throughput,
)


def _two_and_a_pair() -> Problem:
    return problem(
        [[4.0, 2.0], [10.0, 5.0]],
        [2, 4],
        scale=[1, 2],
        pairs=[(1, 0)],
        pair_throughputs=[[[8.0, 3.0], [4.0, 1.0]]],
    )


X = np.array([[0.25, 0.5], [0.125, 0.0], [0.0, 0.25]])


def test_a_pair_counts_for_both_jobs_and_takes_the_workers_of_the_larger() -> None:
    made = _two_and_a_pair()
    assert effective_throughput(made, X).tolist() == [4 * 0.25 + 2 * 0.5 + 1.0 * 0.25, 10 * 0.125 + 4.0 * 0.25]
    assert time_used(made, X).tolist() == [1.0, 0.375]
    assert workers_used(made, X).tolist() == [0.25 + 2 * 0.125, 0.5 + 2 * 0.25]
    assert made.row_scale().tolist() == [1.0, 2.0, 2.0]
    assert made.rows == 3


@pytest.mark.parametrize("part", [1.0, 1.0 + 2**-20])
def test_what_is_beyond_a_jobs_time_shrinks_all_by_as_much(part: float) -> None:
    made = _two_and_a_pair()
    assert within_bounds(made, X * part) == pytest.approx(X, rel=1e-12)


def test_what_is_beyond_the_workers_shrinks_all_by_as_much_and_negative_time_is_none() -> None:
    made = problem([[1.0, 1.0, 0.0]] * 4, [2, 1, 0])
    x = np.array([[0.9, 0.0, 0.0]] * 3 + [[-1e-9, 0.5, 0.0]])
    bounded = within_bounds(made, x)
    assert bounded == pytest.approx(np.maximum(x, 0.0) / 1.35)
    assert within_bounds(made, bounded * 0.5) == pytest.approx(bounded * 0.5)


def test_a_type_without_workers_bounds_nobody() -> None:
    made = problem([[1.0, 1.0]], [1, 0])
    assert within_bounds(made, np.array([[0.5, 0.0]])).tolist() == [[0.5, 0.0]]


def test_the_shares_that_policies_measure_by() -> None:
    """Section 4.1: with one V100 and one K80 the equal share is half on each."""
    made = problem([[40.0, 10.0], [12.0, 4.0]], [1, 1])
    assert equal_share_throughput(made).tolist() == [25.0, 8.0]
    wide = problem([[6.0, 2.0, 9.0], [6.0, 2.0, 9.0]], [2, 6, 0], scale=[1, 4])
    assert equal_share_throughput(wide).tolist() == [3.0, 3.0]
    assert isolated_shares(wide) == pytest.approx(np.array([[0.25, 0.75, 0.0], [0.25, 0.75, 0.0]]))
    few = problem([[6.0, 2.0]] * 4, [2, 2], scale=[1, 1, 1, 2])
    assert isolated_shares(few)[3] == pytest.approx([0.25, 0.25])
    assert isolated_throughput(few) == pytest.approx([4.0, 4.0, 4.0, 2.0])
    assert fastest_throughput(wide).tolist() == [6.0, 6.0], "nobody is fast on a type without workers"


def test_a_share_of_a_type_is_in_the_faster_placement_and_nowhere_where_a_job_cannot_run() -> None:
    made = with_placements(problem([[1.0, 1.0], [1.0, 0.0]], [4, 4], scale=[2, 2]), 0)
    made = replace(made, throughputs=np.array([[1.0, 1.0, 1.5, 0.5], [1.0, 0.0, 0.25, 0.0]]))
    x = on_columns(made, np.array([[0.5, 0.25], [0.5, 0.25]]))
    assert x.tolist() == [[0.0, 0.25, 0.5, 0.0], [0.5, 0.0, 0.0, 0.0]]
    assert best_throughputs(made).tolist() == [[1.5, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"types": ()}, "workers: is empty"),
        ({"workers": np.zeros(2)}, "workers: there is no worker at all"),
        ({"jobs": ()}, "jobs: is empty"),
        ({"scale": np.array([1.0, 0.5])}, r"jobs\[1\].scale_factor: must be at least 1, is 0.5"),
        ({"weight": np.array([0.0, 1.0])}, r"jobs\[0\].weight: must be above 0, is 0"),
        ({"weight": np.array([1.0, np.nan])}, r"jobs\[1\].weight: must be above 0, is nan"),
        ({"elapsed": np.array([0.0, -1.0])}, r"jobs\[1\].time_since_start: must be at least 0, is -1"),
        ({"isolated_elapsed": np.array([-2.0, -1.0])}, r"jobs\[0\].isolated_time: must be at least 0, is -2"),
        ({"steps": np.array([np.nan, -1.0])}, r"jobs\[1\].steps_remaining: must be at least 0, is -1"),
        ({"slo": np.array([1.0, 0.0])}, r"jobs\[1\].slo_s: is in the past \(0\)"),
        ({"throughputs": np.array([[1.0, 1.0], [2.0, -1.0]])}, r"jobs\[1\].throughputs: must not be negative"),
        ({"throughputs": np.array([[0.0, 1.0], [1.0, 0.0]])}, r"jobs\[0\].throughputs: all are 0.*job 'j0'"),
        ({"tenants": (Tenant("a"), Tenant("b", 0.0))}, r"tenants\[1\].weight: must be above 0, is 0"),
    ],
)
def test_what_no_policy_can_use_is_refused_by_field(change: dict[str, Any], message: str) -> None:
    """The second type has no workers."""
    made = problem([[1.0, 1.0], [1.0, 0.0]], [1, 0])
    with pytest.raises(FieldError, match=message):
        check(replace(made, **change))


def test_what_is_just_possible_is_not_refused() -> None:
    check(
        replace(
            problem([[1.0, 0.0]] * 2, [1, 0]),
            weight=np.full(2, 1e-300),
            steps=np.array([0.0, np.nan]),
            slo=np.array([1e-9, np.inf]),
            tenants=(Tenant("a", 1e-9),),
        )
    )
