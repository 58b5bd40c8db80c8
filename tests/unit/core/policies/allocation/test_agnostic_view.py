"""What an agnostic scheduler sees of a problem, figure by figure, and its shares back on the types."""

from dataclasses import replace

import numpy as np
import pytest

from support.planner.allocation import problem, with_placements
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.agnostic import agnostic, evened, spread
from synergy_core.policies.allocation.problem import time_used
from synergy_core.policies.allocation.programme.transport import MOST_TYPES


def test_a_job_has_one_speed_the_mean_over_the_workers_that_it_can_use() -> None:
    """Types 0 and 2 are one pool: the same jobs can use them."""
    made = problem([[4.0, 3.0, 1.0], [8.0, 0.0, 2.0]], [1, 4, 3], cost=[5.0, 7.0, 1.0])
    view = agnostic(made)
    assert view.types == view.columns == ("t0", "t1")
    assert view.workers.tolist() == [4.0, 4.0]
    assert view.column_type.tolist() == [0, 1]
    first, second = (4 + 12 + 3) / 8, (8 + 6) / 4
    assert view.throughputs.tolist() == [[first, first], [second, 0.0]]
    assert view.cost.tolist() == [2.0, 7.0]
    assert view.pair_throughputs.shape == (0, 2, 2)


def test_a_type_without_workers_counts_for_nothing() -> None:
    """Neither its speed nor its missing price; the jobs cannot run on it."""
    made = problem([[4.0, 99.0], [2.0, 99.0]], [2, 0], cost=[3.0, np.nan])
    view = agnostic(made)
    assert view.throughputs.tolist() == [[4.0, 0.0], [2.0, 0.0]]
    assert view.workers.tolist() == [2.0, 0.0]
    assert view.cost.tolist() == [3.0, 0.0]
    assert spread(made, np.array([[0.5, 0.0], [1.0, 0.0]])).tolist() == [[0.5, 0.0], [1.0, 0.0]]


def test_a_pool_with_a_type_of_unknown_price_has_none() -> None:
    view = agnostic(problem([[4.0, 2.0]], [1, 3], cost=[8.0, np.nan]))
    assert np.isnan(view.cost).tolist() == [True]


def test_a_pair_keeps_of_the_one_speed_what_it_keeps_on_average_over_the_pools_workers() -> None:
    """On the first type halves, on the second three quarters and a half; the second job cannot use the third."""
    shared = [[[2.0, 4.0], [1.5, 1.0], [1.0, 0.0]]]
    made = problem([[4.0, 2.0, 6.0], [8.0, 2.0, 0.0]], [1, 3, 1], pairs=[(0, 1)], pair_throughputs=shared)
    view = agnostic(made)
    assert view.workers.tolist() == [4.0, 1.0]
    mean = ((4 + 6 + 6) / 5, (8 + 6) / 4)
    kept = ((0.5 * 1 + 0.75 * 3) / 4, (0.5 * 1 + 0.5 * 3) / 4)
    assert view.pair_throughputs[0, 0] == pytest.approx([mean[0] * kept[0], mean[1] * kept[1]])
    assert view.pair_throughputs[0, 1] == pytest.approx([mean[0] / 6.0, 0.0])


def test_jobs_that_cannot_run_at_all_are_no_reason_for_a_number_that_is_none() -> None:
    made = problem([[4.0, 2.0], [8.0, 2.0]], [1, 1], pairs=[(0, 1)], pair_throughputs=[[[3.0, 6.0], [1.0, 1.0]]])
    alone = np.array([[4.0, 2.0], [0.0, 0.0]])
    view = agnostic(replace(made, throughputs=alone, pair_throughputs=np.zeros((1, 2, 2))))
    assert np.isfinite(view.throughputs).all()
    assert not view.pair_throughputs.any()


def test_the_time_on_a_pool_is_spread_over_its_types_by_their_workers() -> None:
    made = problem([[4.0, 3.0, 1.0], [8.0, 0.0, 2.0]], [1, 4, 3], pairs=[(0, 1)],
                   pair_throughputs=[[[3.0, 6.0], [0.0, 0.0], [1.0, 1.5]]])  # fmt: skip
    x = spread(made, np.array([[0.4, 0.5], [0.8, 0.0], [0.2, 0.0]]))
    assert x == pytest.approx(np.array([[0.1, 0.5, 0.3], [0.2, 0.0, 0.6], [0.05, 0.0, 0.15]]))


def test_spread_over_placements_it_is_in_the_faster_one_and_pairs_are_packed() -> None:
    made = with_placements(problem([[1.0, 1.0]] * 2, [4, 4], scale=[2, 2], pairs=[(0, 1)],
                                   pair_throughputs=[[[0.9, 0.9], [0.9, 0.9]]]), 0)  # fmt: skip
    made = replace(made, throughputs=np.array([[1.0, 1.0, 1.5, 0.5], [1.0, 1.0, 0.5, 0.0]]))
    x = spread(made, np.array([[0.5], [0.25], [0.5]]))
    assert x.tolist() == [[0.0, 0.25, 0.25, 0.0], [0.125, 0.125, 0.0, 0.0], [0.25, 0.25, 0.0, 0.0]]


def test_jobs_that_can_use_the_same_pools_are_on_each_equally_long_beside_pairs_that_keep_theirs() -> None:
    """Pairs take one of three workers of the first pool; two jobs alone, of 1 and 2 workers, want half of each time."""
    view = problem([[2.0, 2.0]] * 2 + [[2.0, 0.0]] * 2, [3, 4], scale=[1, 2, 1, 1], pairs=[(2, 3)],
                   pair_throughputs=[[[1.9, 1.9], [0.0, 0.0]]])  # fmt: skip
    x = np.zeros((5, 2))
    x[0, 1], x[1, 0], x[4, 0] = 0.5, 0.5, 1.0
    found = evened(view, x)
    assert found[4].tolist() == [1.0, 0.0]
    assert found[:2] == pytest.approx(0.5 * np.array([[1 / 3, 2 / 3]] * 2))
    assert time_used(view, found) == pytest.approx(time_used(view, x))


@pytest.mark.parametrize(("types", "same"), [(1, True), (2, False), (MOST_TYPES, False), (MOST_TYPES + 1, True)])
def test_one_pool_or_very_many_stay_as_they_were_divided(types: int, same: bool) -> None:
    view = problem([[1.0] * types], [1] * types)
    x = np.zeros((1, types))
    x[0, 0] = 0.5
    found = evened(view, x)
    assert (found.tolist() == x.tolist()) == same
    assert found.sum() == pytest.approx(0.5)
    assert not same or found is x


def test_by_cost_the_division_among_pools_is_the_programmes() -> None:
    """The second pool is cheaper: all the time is there, and stays there."""
    made = problem([[1.0, 1.0], [1.0, 0.0]], [2, 2], cost=[9.0, 1.0])
    assert solve(made, "min-cost", aware=False).x[0].tolist() == pytest.approx([0.0, 1.0])
    assert solve(made, "max-min-fairness-water-filling", aware=False).x[0] == pytest.approx([1 / 2, 1 / 2])
