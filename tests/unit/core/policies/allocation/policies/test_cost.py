"""Cost policies on small problems: the ratio, what deadlines need first, and who has the rest of the cheap types."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.planner.allocation import assert_valid, drawn, problem
from synergy_core.model.snapshot import FieldError
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.policies.cost import objective, prices, slo_throughput
from synergy_core.policies.allocation.problem import Problem, effective_throughput, workers_used


def _budget(solves: int) -> Budget:
    left = iter([9.0] * solves)
    return Budget(lambda: next(left, 0.0))


def test_the_objective_is_steps_for_each_dollar_with_all_workers_of_a_job_paid() -> None:
    made = problem([[4.0, 2.0], [6.0, 3.0]], [9, 9], scale=[1, 3], cost=[2.0, 0.5])
    x = np.array([[0.5, 0.5], [1.0, 0.0]])
    assert objective(made, x) == pytest.approx((3.0 + 6.0) / (0.5 * 2 + 0.5 * 0.5 + 3 * 2))
    assert objective(made, np.zeros((2, 2))) == 0.0


@pytest.mark.parametrize(
    ("workers", "cost", "message"),
    [
        ([1, 1], [1.0, np.nan], r"costs_per_hour.t1: is missing"),
        ([1, 1], [0.0, 1.0], r"costs_per_hour.t0: must be above 0, is 0"),
        ([1, 0], [1.0, np.nan], None),
        ([1, 0], [1.0, -1.0], None),
    ],
)
def test_each_type_with_workers_needs_a_price(workers: list[int], cost: list[float], message: str | None) -> None:
    made = problem([[1.0, 1.0]], workers, cost=cost)
    if message is None:
        assert prices(made)[0] == 1.0
        assert solve(made, "min-cost").x.tolist() == [[1.0, 0.0]]
        return
    for efficient in (False, True):
        with pytest.raises(FieldError, match=message):
            solve(made, "min-cost", efficient=efficient)


def test_a_job_with_a_deadline_needs_its_steps_and_the_others_do_not() -> None:
    made = problem([[1.0]] * 3, [1], steps=[10.0, np.nan, 30.0], slo=[5.0, np.inf, np.inf])
    assert slo_throughput(made).tolist() == [2.0, 0.0, 0.0]
    bad = problem([[1.0]] * 3, [1], steps=[10.0, np.nan, 30.0], slo=[5.0, 7.0, np.inf])
    with pytest.raises(FieldError, match=r"jobs\[1\].steps_remaining: is missing"):
        slo_throughput(bad)


def test_of_all_that_are_worth_as_much_for_the_money_the_one_with_the_most_throughput_is_given() -> None:
    """A hundred steps for a dollar on t1, forty on t0: nobody runs on t0, and both workers of t1 are used."""
    made = problem([[40.0, 10.0]] * 4, [2, 2], cost=[1.0, 0.1])
    found = solve(made, "min-cost")
    assert found.objective == pytest.approx(100.0)
    assert workers_used(made, found.x) == pytest.approx([0.0, 2.0], abs=1e-7)
    assert found.status == "optimal"


def test_deadlines_are_kept_at_the_best_ratio_that_is_left() -> None:
    """30 steps/s need t0 for two thirds of the time (10 + 2/3 * 30); the second job stays on t1."""
    made = problem([[40.0, 10.0], [40.0, 10.0]], [1, 2], cost=[1.0, 0.1], steps=[3000.0, 100.0], slo=[100.0, np.inf])
    found = solve(made, "min-cost-slo")
    assert found.x == pytest.approx(np.array([[2 / 3, 1 / 3], [0.0, 1.0]]), abs=1e-6)
    assert found.objective == pytest.approx(40.0 / (2 / 3 + 0.1 / 3 + 0.1))


def test_a_deadline_that_no_type_can_keep_is_named_with_what_it_takes() -> None:
    made = problem([[1.0, 1.0], [4.0, 99.0]], [2, 0], steps=[10.0, 100.0], slo=[10.0, 20.0])
    for efficient in (False, True):
        with pytest.raises(FieldError, match=r"jobs\[1\].slo_s: 20 s cannot be met: 100 steps take job 'j1' 25 s"):
            solve(made, "min-cost-slo", efficient=efficient)


def test_of_deadlines_that_cannot_be_kept_together_the_one_that_falls_shortest_is_named() -> None:
    """Each alone could: 0.9 and 0.6 of the only worker. 1 / (1 / 1.5)."""
    made = problem([[10.0]] * 3, [1], steps=[600.0, 900.0, 1.0], slo=[100.0, 100.0, np.inf])
    for efficient in (False, True):
        with pytest.raises(FieldError, match=r"jobs\[1\].slo_s: no feasible.* 1 / 0.6667 times .*'j1'"):
            solve(made, "min-cost-slo", efficient=efficient)
    just = problem([[10.0]] * 2, [1], steps=[1000.0, 1.0], slo=[100.0, np.inf])
    assert solve(just, "min-cost-slo").x[0, 0] == pytest.approx(1.0)


def _rounds(made: Problem, policy: str = "min-cost", **more: Any) -> Any:
    found = solve(made, policy, efficient=True, **more)
    assert_valid(made, found.x)
    return found


def test_in_rounds_each_job_has_its_steps_where_they_are_its_own_cheapest_and_shares_them_fairly() -> None:
    """The first two are cheapest on t1, the last on t0: a tenth as many steps there for a hundredth of the price."""
    made = problem([[40.0, 10.0], [40.0, 10.0], [40.0, 0.1]], [1, 1], cost=[1.0, 0.1])
    assert _rounds(made).x == pytest.approx(np.array([[0.0, 0.5], [0.0, 0.5], [1.0, 0.0]]), abs=1e-6)


def test_in_rounds_types_at_the_same_price_for_a_step_are_both_cheapest() -> None:
    made = problem([[4.0, 2.0]] * 2, [1, 1], cost=[2.0, 1.0])
    x = _rounds(made).x
    assert workers_used(made, x) == pytest.approx([1.0, 1.0], abs=1e-6)
    dearer = problem([[4.0, 2.0]] * 2, [1, 1], cost=[2.0 + 1e-6, 1.0])
    assert workers_used(dearer, _rounds(dearer).x) == pytest.approx([0.0, 1.0], abs=1e-6)


def test_in_rounds_a_type_without_workers_is_nobodys_cheapest() -> None:
    made = problem([[4.0, 9.0]], [1, 0], cost=[2.0, 1.0])
    assert _rounds(made).x == pytest.approx(np.array([[1.0, 0.0]]), abs=1e-6)


def test_in_rounds_deadlines_come_first_at_the_least_cost_and_the_rest_has_what_is_left() -> None:
    """All of the first job's time, half on each type, is 25 steps/s. The other has what that leaves of its cheapest."""
    made = problem([[40.0, 10.0], [40.0, 10.0]], [1, 1], cost=[1.0, 0.1], steps=[2500.0, 100.0], slo=[100.0, np.inf])
    x = _rounds(made, "min-cost-slo").x
    assert x == pytest.approx(np.array([[0.5, 0.5], [0.0, 0.5]]), abs=1e-6)


def test_in_rounds_a_job_whose_deadline_leaves_it_time_has_that_at_its_cheapest_too() -> None:
    """Three tenths of the time are enough for 3 of 10 steps/s; nobody else wants the rest."""
    made = problem([[40.0, 10.0]], [1, 1], cost=[1.0, 0.1], steps=[300.0], slo=[100.0])
    assert _rounds(made, "min-cost-slo").x == pytest.approx(np.array([[0.0, 1.0]]), abs=1e-6)


@settings(max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_in_rounds_deadlines_are_kept_and_nobody_is_on_a_type_that_is_not_its_cheapest_but_for_them(seed: int) -> None:
    made = drawn(seed, 8)
    rng = np.random.default_rng(seed)
    speed = effective_throughput(made, solve(made, "makespan").x)
    slo = np.where(rng.random(8) < 0.4, made.steps / np.maximum(speed, 1e-300) * 1.5, np.inf)
    made = problem(made.throughputs, made.workers, scale=made.scale, weight=made.weight, steps=made.steps, slo=slo,
                   cost=made.cost)  # fmt: skip
    found = _rounds(made, "min-cost-slo")
    needed = slo_throughput(made)
    assert (effective_throughput(made, found.x) >= needed * (1 - 1e-7)).all()
    worth = np.where(made.workers > 0, made.throughputs / made.cost, 0.0)
    dear = worth < worth.max(axis=1, keepdims=True) * (1 - 1e-8)
    assert not (found.x[needed == 0] * dear[needed == 0] > 1e-9).any()


def test_in_rounds_a_pair_runs_where_the_steps_of_both_are_cheapest() -> None:
    """The first two share t1, which is cheapest for both; the third is cheapest on t0 and shares with nobody."""
    made = problem(
        [[40.0, 10.0], [40.0, 10.0], [40.0, 1.0]],
        [1, 1],
        cost=[1.0, 0.1],
        pairs=[(0, 1), (1, 2)],
        pair_throughputs=[[[39.0, 39.0], [9.0, 9.0]], [[39.0, 39.0], [9.0, 0.9]]],
    )
    x = _rounds(made).x
    assert x[3] == pytest.approx([0.0, 1.0], abs=1e-6)
    assert x[2] == pytest.approx([1.0, 0.0], abs=1e-6)
    assert not x[4].any()


def test_in_rounds_a_pair_with_a_job_that_has_no_time_left_is_left_out() -> None:
    """The first job's deadline takes all its time on t0. The second has t1, alone."""
    made = problem(
        [[40.0, 10.0], [40.0, 10.0]],
        [1, 1],
        cost=[1.0, 0.1],
        steps=[4000.0, 10.0],
        slo=[100.0, np.inf],
        pairs=[(0, 1)],
        pair_throughputs=[[[20.0, 30.0], [9.0, 9.0]]],
    )
    x = _rounds(made, "min-cost-slo").x
    assert x == pytest.approx(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), abs=1e-6)


def test_in_rounds_a_pair_has_no_more_than_what_the_deadline_of_one_of_its_jobs_leaves() -> None:
    """Half of the first job's time goes to its deadline on t0; the pair has t1 for the other half."""
    made = problem(
        [[40.0, 10.0], [40.0, 10.0]],
        [1, 1],
        cost=[1.0, 0.1],
        steps=[2500.0, 10.0],
        slo=[100.0, np.inf],
        pairs=[(0, 1)],
        pair_throughputs=[[[0.0, 0.0], [9.9, 9.9]]],
    )
    found = _rounds(made, "min-cost-slo")
    assert (effective_throughput(made, found.x) >= slo_throughput(made) * (1 - 1e-7)).all()
    assert workers_used(made, found.x)[1] == pytest.approx(1.0, abs=1e-6)


def test_when_time_runs_out_in_rounds_what_the_deadlines_need_is_kept() -> None:
    made = problem([[40.0, 10.0]] * 2, [1, 1], cost=[1.0, 0.1], steps=[2500.0, 1.0], slo=[100.0, np.inf])
    found = _rounds(made, "min-cost-slo", budget=_budget(1))
    assert found.status == "time-limit"
    assert found.x == pytest.approx(np.array([[0.5, 0.5], [0.0, 0.0]]), abs=1e-6)
    nothing = _rounds(made, "min-cost", budget=_budget(0))
    assert nothing.note == "the isolated allocation"
