"""Solves that outlast the plan that began them."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import msgspec
import pytest

from support.planner.allocation import problem
from support.planner.planning import GIB, job, node
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import FieldError, Profile, Snapshot
from synergy_core.plan import plan
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.budget import Budget, OutOfTimeError
from synergy_core.policies.allocation.problem import AllocationMatrix
from synergy_core.policies.allocation.programme.point import SolverError
from synergy_core.policies.allocation.solver import LateSolution, Sought
from synergy_extender.planner.overtime import LONGEST_S, Overtime
from synergy_extender.planner.process import Planner
from synergy_extender.planner.question import Answer, Asked, question_after

MADE = problem([[4.0, 1.0], [2.0, 1.0]], [1.0, 1.0])
ANSWER = solve(MADE, "makespan")
PATIENCE_S = 60.0
NO_TIME, ENOUGH = Budget(lambda: 0.0), Budget(lambda: PATIENCE_S)


class _Held(Sought):
    """A solve that goes on until it is let go, and ends as `ends` says."""

    def __init__(self, ends: Callable[[], AllocationMatrix] = lambda: ANSWER, policy: str = "makespan") -> None:
        super().__init__(MADE, policy, aware=True)
        self.begun, self.go = threading.Event(), threading.Event()
        self.budget = Budget()
        self._ends = ends

    def solve(self, budget: Budget) -> AllocationMatrix:
        if budget.spent:
            raise OutOfTimeError
        self.budget = budget
        self.begun.set()
        assert self.go.wait(PATIENCE_S)
        return self._ends()


@contextmanager
def _going(sought: _Held, overtime: Overtime) -> Iterator[None]:
    """Begun by a plan that cannot wait; let go in any case."""
    try:
        with pytest.raises(OutOfTimeError):
            overtime.solve(sought, NO_TIME)
        assert sought.begun.wait(PATIENCE_S)
        yield
    finally:
        sought.go.set()


def _repeated(step: Callable[[], LateSolution | Answer | bool | None]) -> object:
    """What a step says once it says something."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if found := step():
            return found
        time.sleep(0.01)
    raise AssertionError("it did not come")


def test_what_is_found_within_the_budget_is_the_answer() -> None:
    sought, overtime = _Held(), Overtime()
    sought.go.set()
    assert overtime.solve(sought, ENOUGH) is ANSWER
    assert overtime.late() is None


def test_what_takes_longer_goes_on_and_is_told_once() -> None:
    sought, overtime = _Held(), Overtime()
    with _going(sought, overtime):
        assert overtime.late() is None
    late = _repeated(overtime.late)
    assert isinstance(late, LateSolution)
    assert (late.sought, late.answer) == (sought, ANSWER)
    assert overtime.late() is None


def test_what_is_cut_short_serves_and_is_sought_in_full_beside_the_plans() -> None:
    overtime, cut = Overtime(), replace(ANSWER, status="time-limit")
    answers = iter([cut, ANSWER])
    sought = _Held(lambda: next(answers))
    sought.go.set()
    assert overtime.solve(sought, ENOUGH) is cut
    late = _repeated(overtime.late)
    assert isinstance(late, LateSolution)
    assert (late.sought, late.answer) == (sought, ANSWER)


def test_while_one_goes_on_no_other_is_begun_and_nobody_waits() -> None:
    overtime, next_one = Overtime(), _Held()
    with _going(_Held(), overtime):
        never = Budget(lambda: pytest.fail("asked how long to wait"))
        with pytest.raises(OutOfTimeError):
            overtime.solve(next_one, never)
        assert not next_one.begun.is_set()


def test_under_another_policy_what_goes_on_is_given_up_and_another_begun() -> None:
    overtime, old, new = Overtime(), _Held(), _Held(policy="max-min-fairness")
    with _going(old, overtime):
        assert not old.budget.spent
        with _going(new, overtime):
            assert old.budget.spent
            assert not new.budget.spent
    late = _repeated(overtime.late)
    assert isinstance(late, LateSolution)
    assert late.sought is new


def test_a_solve_ends_after_an_hour() -> None:
    now = [0.0]
    overtime, sought = Overtime(clock=lambda: now[0]), _Held()
    with _going(sought, overtime):
        now[0] = LONGEST_S - 1.0
        assert sought.budget.left() == pytest.approx(1.0)
        now[0] = LONGEST_S
        assert sought.budget.spent


ERRORS = [FieldError("jobs", "is odd"), SolverError("singular"), MemoryError(), OutOfTimeError()]


def _failing(error: Exception) -> Callable[[], AllocationMatrix]:
    def fails() -> AllocationMatrix:
        raise error

    return fails


def _after_its_end(overtime: Overtime, going: _Held) -> None:
    """What was begun has ended in vain, and been asked for."""
    with _going(going, overtime):
        pass
    _repeated(lambda: _is_free(overtime))


def _is_free(overtime: Overtime) -> bool:
    assert overtime.late() is None
    return overtime._going is None


@pytest.mark.parametrize("error", ERRORS)
def test_what_was_sought_in_vain_is_said_in_the_log(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    _after_its_end(Overtime(), _Held(_failing(error)))
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    again = "; the next one is begun in an hour" if isinstance(error, MemoryError) else ""
    assert record.getMessage() == f"an allocation (makespan) was sought in full in vain: {error!r}{again}"


def test_where_memory_did_not_suffice_none_of_that_policy_is_begun_for_an_hour() -> None:
    now = [0.0]
    overtime, failing = Overtime(clock=lambda: now[0]), _Held(_failing(MemoryError()))
    _after_its_end(overtime, failing)
    with pytest.raises(MemoryError):
        Overtime().solve(failing, ENOUGH)
    for later, policy, begins in (
        (LONGEST_S - 1.0, "makespan", False),
        (LONGEST_S - 1.0, "fifo", True),
        (LONGEST_S, "makespan", True),
    ):
        now[0] = later
        again = _Held(policy=policy)
        with pytest.raises(OutOfTimeError):
            overtime.solve(again, NO_TIME)
        assert (overtime._going is not None) == begins, (later, policy)
        again.go.set()


@pytest.mark.parametrize("error", [error for error in ERRORS if not isinstance(error, MemoryError)])
def test_an_error_is_told_to_the_plan_that_waits_and_else_the_next_one_begins_anew(error: Exception) -> None:
    fails = _failing(error)

    overtime, sought, again = Overtime(), _Held(fails), _Held()
    sought.go.set()
    with pytest.raises(type(error)):
        Overtime().solve(sought, ENOUGH)
    _after_its_end(overtime, _Held(fails))
    with _going(again, overtime):
        pass


def test_an_error_in_the_code_is_not_passed_over() -> None:
    overtime = Overtime()
    with _going(_Held(_failing(ZeroDivisionError())), overtime):
        pass
    with pytest.raises(ZeroDivisionError):
        _repeated(overtime.late)


@pytest.mark.parametrize(("policy", "at_last"), [("max-min-fairness", ""), ("makespan", "last")])
def test_a_planner_whose_plans_can_never_wait_follows_the_policy_from_the_next_plan_on(
    policy: str, at_last: str
) -> None:
    """`a` is to have the V100 all the time, `b` the K80; everybody's own part is half of both."""

    def profile(speed: float) -> Profile:
        return Profile(cpu_millis=(1000,), memory_bytes=(GIB,), steps_per_s=((speed,),))

    profiles = [{"V100": profile(100.0), "K80": profile(1.0)}, {"V100": profile(10.0), "K80": profile(10.0)}]
    jobs = tuple(
        job(name, gpu_types=("V100", "K80"), profiles=each, steps_total=10**6)
        for name, each in zip("ab", profiles, strict=True)
    )
    snapshot = Snapshot(nodes=(node("v", 1, gpu_type="V100"), node("k", 1, gpu_type="K80")), jobs=jobs)
    config, planner = PlanConfig(policy=policy, mechanism="proportional"), Planner()
    question = msgspec.msgpack.encode(question_after(None, Asked(snapshot, {}), config, 0.0))

    def ask() -> Answer:
        answer = planner.answer(question)
        assert isinstance(answer, Answer), answer
        return answer

    assert ask().plan.shares_from == "isolated"
    _repeated(lambda: ask().plan.shares_from == at_last)
    assert ask().plan.allocations == plan(snapshot, config).allocations
