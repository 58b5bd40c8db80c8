"""Finish-time fairness in rounds on small problems with a known answer: one level after another, limits, jobs done."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from support.planner.allocation import assert_valid, problem
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.budget import Budget
from synergy_core.policies.allocation.policies.finish_time_fairness import finish_time_fairness, isolated_finish
from synergy_core.policies.allocation.problem import Problem, effective_throughput
from synergy_core.policies.allocation.programme.point import Point
from synergy_core.policies.allocation.programme.programme import Programme


def _rounds(made: Problem, budget: Budget | None = None) -> Any:
    found = solve(made, "finish-time-fairness", efficient=True, budget=budget)
    assert_valid(made, found.x)
    return found


def _counted(monkeypatch: pytest.MonkeyPatch) -> list[Point]:
    solved: list[Point] = []
    solve_once = Programme.solve

    def counting(self: Programme, **numbers: Any) -> Point:
        solved.append(solve_once(self, **numbers))
        return solved[-1]

    monkeypatch.setattr(Programme, "solve", counting)
    return solved


def _two_by_two(elapsed: float = 800.0) -> Problem:
    """Two jobs on each of two GPUs, of which the first two are further behind. n is 4."""
    return problem(
        [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]],
        [1, 1],
        steps=[100.0, 100.0, 100.0, 300.0],
        elapsed=[5000.0, 5000.0, 0.0, elapsed],
        isolated_elapsed=[500.0, 500.0, 0.0, elapsed],
    )


def test_isolated_finish_is_what_was_done_and_what_is_left_on_an_nth() -> None:
    assert isolated_finish(_two_by_two()).tolist() == [900.0, 900.0, 400.0, 2000.0]


def test_the_jobs_that_the_first_level_leaves_rise_to_one_level_of_their_own() -> None:
    """The third and fourth share the second GPU so that (100 / x) / 400 = (800 + 300 / (1 - x)) / 2,000."""
    found = _rounds(_two_by_two())
    x = brentq(lambda part: 100 / part / 400 - (800 + 300 / (1 - part)) / 2000, 0.01, 0.99)
    assert found.x[:2, 0] == pytest.approx([0.5, 0.5], rel=1e-6)
    assert found.x[2:, 1] == pytest.approx([x, 1 - x], rel=1e-6)
    assert found.status == "optimal"
    rho = finish_time_fairness(_two_by_two(), found.x)
    assert rho == pytest.approx([5200 / 900, 5200 / 900, rho[3], rho[3]])
    assert rho[3] < 1.0


def test_a_job_that_has_all_it_could_have_leaves_the_rest_to_the_others() -> None:
    """The first runs all the time; the others share a GPU, as their own level says."""
    made = problem([[1.0]] * 3, [2], steps=[100.0, 100.0, 300.0], elapsed=[9000.0, 0.0, 0.0],
                   isolated_elapsed=[0.0] * 3)  # fmt: skip
    found = _rounds(made)
    assert found.x[:, 0] == pytest.approx([1.0, 0.5, 0.5], rel=1e-6)
    rho = finish_time_fairness(made, found.x)
    assert rho[1] == pytest.approx(rho[2])


def test_a_job_that_is_slower_at_its_best_rises_to_that_and_the_other_has_what_is_left() -> None:
    made = problem([[1.0, 0.0], [2.0, 1.0]], [1, 1], steps=[100.0, 100.0], elapsed=[500.0, 0.0],
                   isolated_elapsed=[0.0] * 2)  # fmt: skip
    found = _rounds(made)
    assert effective_throughput(made, found.x) == pytest.approx([1.0, 1.0], rel=1e-6)


def test_many_jobs_that_have_all_they_could_have_take_no_level_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty jobs of different age with a GPU each, beside three that share one."""
    solved = _counted(monkeypatch)
    ages = np.concatenate([np.geomspace(10.0, 1e5, 40), [0.0, 10.0, 20.0]])
    speeds = np.zeros((43, 2))
    speeds[:40, 0], speeds[40:, 1] = 1.0, 1.0
    made = problem(speeds, [40, 1], steps=np.full(43, 100.0), elapsed=ages, isolated_elapsed=np.zeros(43))
    found = _rounds(made)
    assert found.x[:40, 0] == pytest.approx(np.ones(40), rel=1e-6)
    rho = finish_time_fairness(made, found.x)
    assert rho[40:] == pytest.approx(np.full(3, rho[41]), rel=1e-5)
    assert len(solved) <= 2


@pytest.mark.parametrize("steps", [[100.0, 0.0, 0.0], [100.0, 50.0, 0.0], [0.0, 100.0, 0.0]])
def test_jobs_without_steps_share_what_the_others_leave(steps: list[float]) -> None:
    """Two GPUs; nobody has more than one."""
    made = problem([[1.0]] * 3, [2], steps=steps)
    found = _rounds(made)
    assert found.x.sum() == pytest.approx(2.0, rel=1e-6)
    done = np.array(steps) == 0
    assert found.x[~done, 0] == pytest.approx(np.ones((~done).sum()), rel=1e-6)
    assert found.x[done, 0] == pytest.approx(np.full(done.sum(), (2.0 - (~done).sum()) / done.sum()), abs=1e-6)
    assert finish_time_fairness(made, found.x)[done].tolist() == [0.0] * int(done.sum())


def test_when_time_runs_out_the_levels_so_far_stay() -> None:
    """Time for the first level only: the second two have what that gave them."""
    whole = _rounds(_two_by_two())
    for solves in range(1, 12):
        left = iter([9.0] * solves)
        found = _rounds(_two_by_two(), Budget(lambda left=left: next(left, 0.0)))
        if found.status == "optimal":
            break
        assert found.status == "time-limit"
        rho = finish_time_fairness(_two_by_two(), found.x)
        assert rho.max() >= finish_time_fairness(_two_by_two(), whole.x).max() * (1 - 1e-9)
        assert effective_throughput(_two_by_two(), found.x).min() > 0.0
    assert solves > 1
    assert found.x == pytest.approx(whole.x)


def test_one_level_for_all_where_the_largest_rho_is_all_that_counts() -> None:
    """Not in rounds: the others have at least what that rho asks for."""
    made = _two_by_two()
    found = solve(made, "finish-time-fairness")
    assert found.objective == pytest.approx(5200 / 900)
    assert found.status == "optimal"
    assert (finish_time_fairness(made, found.x) <= 5200 / 900 * (1 + 1e-7)).all()
    some_done = problem([[1.0]] * 2, [1], steps=[100.0, 0.0], elapsed=[50.0, 900.0])
    assert solve(some_done, "finish-time-fairness").objective == pytest.approx(150.0 / (50.0 + 200.0))
