"""The matrices of one caller's plans: when the last one serves again, and what stands in for one that is late."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from support.planner.allocation import assert_valid, problem
from synergy_core.model.arrays import Floats
from synergy_core.policies.allocation.budget import Budget, OutOfTimeError
from synergy_core.policies.allocation.problem import AllocationMatrix, Problem
from synergy_core.policies.allocation.programme.point import SolverError
from synergy_core.policies.allocation.solutions import Solutions
from synergy_core.policies.allocation.solver import LateSolution, Sought


class _Told:
    """A solver that answers what it is told to, and counts."""

    def __init__(self, x: Floats | None = None, status: str = "optimal") -> None:
        self.x, self.status, self.asked = x, status, list[Sought]()
        self.after: LateSolution | None = None

    def solve(self, sought: Sought, budget: Budget) -> AllocationMatrix:
        del budget
        self.asked.append(sought)
        if self.x is None:
            raise OutOfTimeError
        return _answer(self.x, self.status)

    def late(self) -> LateSolution | None:
        found, self.after = self.after, None
        return found


def _answer(x: Floats, status: str = "optimal") -> AllocationMatrix:
    return AllocationMatrix(x=x, objective=1.0, status=status, solver="", normalisation="")


def _named(names: Sequence[str], workers: int = 2) -> Problem:
    return replace(problem([[2.0, 1.0]] * len(names), [workers, workers]), jobs=tuple(names))


def _solutions(x: Floats | None = None, status: str = "optimal") -> tuple[Solutions, _Told]:
    solutions, solver = Solutions(), _Told(x, status)
    solutions.solver = solver
    return solutions, solver


AB = np.array([[0.5, 0.25], [0.0, 1.0]])


@pytest.mark.parametrize(("policy", "times"), [("max-min-fairness", 1), ("makespan", 3)])
def test_the_last_matrix_serves_again_while_nothing_changes_that_the_policy_sees(policy: str, times: int) -> None:
    solutions, solver = _solutions(AB)
    made = _named("ab")
    for steps in (10.0, 9.0, 8.0):
        x, source = solutions.shares(replace(made, steps=np.full(2, steps)), policy, aware=True)
        assert (x.tolist(), source) == (AB.tolist(), "")
    assert len(solver.asked) == times


@pytest.mark.parametrize("change", ["policy", "aware", "weight", "job"])
def test_any_other_change_asks_anew(change: str) -> None:
    solutions, solver = _solutions(AB)
    made, policy, aware = _named("ab"), "max-min-fairness", True
    solutions.shares(made, policy, aware=aware)
    made = replace(made, weight=np.array([1.0, 2.0])) if change == "weight" else made
    made = replace(made, jobs=("a", "c")) if change == "job" else made
    policy = "hierarchical" if change == "policy" else policy
    solutions.shares(made, policy, aware=aware and change != "aware")
    assert len(solver.asked) == 2


def test_who_has_half_of_its_time_still_keeps_it_and_who_has_less_gets_its_own_share_beside_it() -> None:
    """`a` keeps all, `b` lost all: its type is gone. `new` was not there. Two of three
    workers of each type are a third for each, which is more than half of each one's time."""
    solutions, solver = _solutions(AB)
    solutions.shares(_named("ab"), "makespan", aware=True)
    solver.x = None
    later = replace(_named(["a", "b", "new"]), throughputs=np.array([[2.0, 1.0], [2.0, 0.0], [2.0, 1.0]]))
    x, source = solutions.shares(later, "makespan", aware=True)
    assert source == "last"
    assert_valid(later, x)
    expected = np.array([[0.5, 0.25], [0.5, 0.0], [0.5, 0.5]])
    assert x == pytest.approx(expected)


@pytest.mark.parametrize(("left", "own"), [(0.5, False), (0.499, True)])
def test_half_of_the_time_is_enough(left: float, own: bool) -> None:
    solutions, solver = _solutions(np.array([[left, 1.0 - left]]))
    solutions.shares(_named("a"), "makespan", aware=True)
    solver.x = None
    later = replace(_named("a"), throughputs=np.array([[2.0, 0.0]]))
    x, _ = solutions.shares(later, "makespan", aware=True)
    assert (x[0, 0] > left) == own


def test_where_nothing_of_the_last_matrix_holds_each_has_its_isolated_share() -> None:
    solutions, solver = _solutions(AB)
    solutions.shares(_named("ab"), "makespan", aware=True)
    solver.x = None
    x, source = solutions.shares(_named("cd"), "makespan", aware=True)
    assert (source, x.tolist()) == ("isolated", [[0.5, 0.5], [0.5, 0.5]])


def test_a_new_planner_gives_isolated_shares_until_it_has_solved() -> None:
    solutions, _ = _solutions(None)
    x, source = solutions.shares(_named("ab"), "makespan", aware=True)
    assert (source, x.tolist()) == ("isolated", [[0.5, 0.5], [0.5, 0.5]])


def test_an_answer_that_was_cut_short_serves_only_until_there_is_a_whole_one() -> None:
    solutions, solver = _solutions(AB, "time-limit")
    made = _named("ab")
    assert solutions.shares(made, "makespan", aware=True)[1] == "cut-short"
    solver.x = np.full((2, 2), 0.5)
    x, source = solutions.shares(made, "makespan", aware=True)
    assert (source, x.tolist()) == ("cut-short", [[0.5, 0.5], [0.5, 0.5]]), "a newer one"
    solver.x = None
    assert solutions.shares(made, "makespan", aware=True)[1] == "cut-short", "it stands in"
    solver.x, solver.status = AB, "optimal"
    assert solutions.shares(made, "makespan", aware=True)[1] == ""
    solver.x, solver.status = np.full((2, 2), 0.5), "time-limit"
    x, source = solutions.shares(made, "makespan", aware=True)
    assert (source, x.tolist()) == ("last", AB.tolist()), "the whole one goes before a newer one that was cut short"


def test_an_answer_that_was_cut_short_is_sought_again_though_nothing_changed() -> None:
    solutions, solver = _solutions(AB, "time-limit")
    for _ in range(2):
        solutions.shares(_named("ab"), "max-min-fairness", aware=True)
    assert len(solver.asked) == 2


@pytest.mark.parametrize(("policy", "aware", "kept"), [("max-min-fairness", True, True), ("makespan", True, False),
                                                       ("max-min-fairness", False, False)])  # fmt: skip
def test_a_late_answer_is_taken_if_it_is_for_the_same_policy(policy: str, aware: bool, kept: bool) -> None:
    solutions, solver = _solutions(None)
    made = _named("ab")
    solutions.shares(made, "max-min-fairness", aware=True)
    (sought,) = solver.asked
    solver.after = LateSolution(replace(sought, policy=policy, aware=aware), _answer(AB))
    x, source = solutions.shares(made, "max-min-fairness", aware=True)
    assert (source, x.tolist()) == (("", AB.tolist()) if kept else ("isolated", [[0.5, 0.5], [0.5, 0.5]]))
    assert len(solver.asked) == (1 if kept else 2)


def test_numbers_that_fail_the_solver_let_the_last_matrix_stand_in() -> None:
    class Fails(_Told):
        def solve(self, sought: Sought, budget: Budget) -> AllocationMatrix:
            del sought, budget
            raise SolverError("numbers")

    solutions, _ = _solutions(AB)
    solutions.shares(_named("ab"), "makespan", aware=True)
    solutions.solver = Fails()
    x, source = solutions.shares(_named("ab"), "makespan", aware=True)
    assert (source, x.tolist()) == ("last", AB.tolist())


def test_it_tells_the_share_of_jobs_and_columns_that_it_knows() -> None:
    solutions, _ = _solutions(AB)
    solutions.shares(_named("ab"), "makespan", aware=True)
    assert solutions.last("a", "t1") == 0.25
    assert solutions.last("b", "t1") == 1.0
    assert solutions.last("c", "t1") == solutions.last("a", "t9") == 0.0


def test_pairs_are_recalled_by_the_names_of_their_jobs_while_the_columns_are_the_same() -> None:
    def paired(names: Sequence[str], pairs: Sequence[tuple[int, int]]) -> Problem:
        shared = [[[1.9, 1.9], [0.9, 0.9]]] * len(pairs)
        made = problem([[2.0, 1.0]] * len(names), [2, 2], pairs=pairs, pair_throughputs=shared)
        return replace(made, jobs=tuple(names))

    solutions, solver = _solutions(np.array([[0.1, 0.0], [0.2, 0.0], [0.0, 0.0], [0.5, 0.25], [0.0, 0.0]]))
    solutions.shares(paired("abc", [(0, 1), (1, 2)]), "makespan", aware=True)
    solver.x = None
    later = paired("bca", [(0, 2), (1, 2), (2, 0)])
    x, source = solutions.shares(later, "makespan", aware=True)
    assert source == "last"
    assert x[3].tolist() == [0.0, 0.0], "that pair names the two the other way round"
    assert x[5].tolist() == [0.5, 0.25]
    assert x[:3, 0] == pytest.approx([0.2, 0.0, 0.1])
    assert_valid(later, x)
    moved = replace(later, columns=("t1", "t0"), types=("t1", "t0"))
    assert not solutions.shares(moved, "makespan", aware=True)[0][3:].any()


def test_a_column_whose_workers_or_speed_are_gone_is_not_recalled() -> None:
    solutions, solver = _solutions(np.array([[0.5, 0.5]]))
    solutions.shares(_named("a"), "makespan", aware=True)
    solver.x = None
    gone = replace(_named("a"), workers=np.array([2.0, 0.0]))
    assert solutions.shares(gone, "makespan", aware=True)[0].tolist() == [[0.5, 0.0]]
