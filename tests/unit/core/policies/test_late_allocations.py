"""While no new allocation is found in time: who came since has time too, and what comes late serves."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from support.planner.allocation import assert_valid, problem
from support.planner.planning import GIB, job, node
from synergy_core.cache import Memory
from synergy_core.model.answer import SharesFrom
from synergy_core.model.config import PlanConfig
from synergy_core.model.snapshot import Job, Profile, Snapshot
from synergy_core.plan import plan
from synergy_core.policies.allocation import solve
from synergy_core.policies.allocation.budget import Budget, OutOfTimeError
from synergy_core.policies.allocation.problem import AllocationMatrix, Problem, time_used
from synergy_core.policies.allocation.solutions import Solutions
from synergy_core.policies.allocation.solver import LateSolution, Sought

ROUND_S = 300.0
NO_TIME = Budget(lambda: 0.0)
ENDLESS = 10**12


def _typed(name: str, arrival_s: float, gpus: int = 1) -> Job:
    profiles = {"V100": Profile(cpu_millis=(1,), memory_bytes=(GIB,), steps_per_s=((5.0,),))}
    return job(name, gpus, gpu_types=("V100",), profiles=profiles, arrival_s=arrival_s, steps_total=ENDLESS)


def _rounds_run(jobs: tuple[Job, ...], new: tuple[Job, ...], policy: str, rounds: int) -> Counter[str]:
    """How many rounds each job runs of those after the first, from which on nothing new is found."""
    memory, ran = Memory(), Counter[str]()
    for number in range(rounds + 1):
        if number == 1:
            memory.solutions.budget, jobs = NO_TIME, jobs + new
        snapshot = Snapshot(nodes=(node("v", 4, gpu_type="V100"),), jobs=jobs, now=number * ROUND_S, round_s=ROUND_S)
        result = plan(snapshot, PlanConfig(policy=policy, mechanism="proportional", explain=False), memory)
        assert result.shares_from == ("last" if number else "")
        held = {allocation.job: allocation for allocation in result.allocations}
        ran.update(list(held) if number else ())
        jobs = tuple(
            replace(
                one,
                running=held.get(one.name),
                received_s={"V100": one.received_s.get("V100", 0.0) + ROUND_S * (one.name in held)},
            )
            for one in jobs
        )
    return ran


@pytest.mark.parametrize("policy", ["finish-time-fairness", "hierarchical", "makespan", "max-min-fairness"])
def test_who_came_after_the_last_allocation_runs_however_long_no_new_one_is_found(policy: str) -> None:
    """Four GPUs, four jobs that have them all the time, four newcomers: each of these is to have a third of the time,
    its half shrunk as all is."""
    old, new = (
        tuple(_typed(f"old{index}", 0.0) for index in range(4)),
        tuple(_typed(f"new{n}", 300.0) for n in range(4)),
    )
    ran = _rounds_run(old, new, policy, 48)
    assert sum(ran.values()) == 4 * 48, "no GPU is idle"
    for one in new:
        assert 12 <= ran[one.name] <= 24
    for one in old:
        assert 24 <= ran[one.name] <= 36


def test_a_newcomer_of_many_gpus_runs_too() -> None:
    old = tuple(_typed(f"old{index}", 0.0) for index in range(4))
    ran = _rounds_run(old, (_typed("wide", 300.0, gpus=4),), "max-min-fairness", 64)
    assert ran["wide"] > 0
    assert all(ran[one.name] for one in old)


def _found(sought: Problem, policy: str = "max-min-fairness") -> Solutions:
    solutions = Solutions()
    _, shares_from = solutions.shares(sought, policy, aware=True)
    assert shares_from == ""
    solutions.budget = NO_TIME
    return solutions


def _without_job(made: Problem, gone: int) -> Problem:
    kept = np.arange(len(made.jobs)) != gone
    each = {
        name: getattr(made, name)[kept]
        for name in ("throughputs", "scale", "weight", "steps", "elapsed", "isolated_elapsed", "arrival", "slo")
    }
    return replace(
        made,
        jobs=tuple(name for row, name in enumerate(made.jobs) if row != gone),
        tenant=made.tenant[kept],
        pairs=made.pairs[:0],
        pair_throughputs=made.pair_throughputs[:0],
        **each,
    )


def test_who_had_all_its_time_with_a_partner_that_is_gone_has_its_own_part() -> None:
    """j0 and j1 share one worker, beside j2 on the other; then j1 is done."""
    made = problem([[4.0], [4.0], [9.0]], [2.0], pairs=[(0, 1)], pair_throughputs=[[[4.0, 4.0]]])
    solutions = _found(made, "makespan")
    later = _without_job(made, 1)
    x, shares_from = solutions.shares(later, "makespan", aware=True)
    assert shares_from == "last"
    assert x[0] == pytest.approx([1.0]), "2 workers for 2 jobs"
    assert_valid(later, x)


def test_to_whom_the_last_allocation_gave_nothing_is_given_nothing_by_it() -> None:
    made = problem([[9.0], [3.0]], [1.0])
    solutions = _found(made, "max-throughput")
    more = problem([[9.0], [3.0], [2.0]], [1.0])
    x, _ = solutions.shares(more, "max-throughput", aware=True)
    assert time_used(more, x) == pytest.approx([0.75, 0.0, 0.25]), "1 and a third, shrunk to one worker"


class _Late:
    """A solver that has nothing in time, and each allocation a plan later."""

    def __init__(self, status: str = "optimal") -> None:
        self.began: list[Sought] = []
        self._status = status

    def solve(self, sought: Sought, budget: Budget) -> AllocationMatrix:
        self.began.append(sought)
        raise OutOfTimeError

    def late(self) -> LateSolution | None:
        if not self.began:
            return None
        answer = solve(self.began[-1].problem, self.began[-1].policy, efficient=True)
        return LateSolution(self.began[-1], replace(answer, status=self._status))


def _asked(status: str, problems: list[Problem], policies: list[str]) -> list[SharesFrom]:
    solutions, told = Solutions(), []
    solutions.solver = _Late(status)
    for made, policy in zip(problems, policies, strict=True):
        told.append(solutions.shares(made, policy, aware=True)[1])
    return told


def test_what_comes_late_serves_the_next_plan_and_in_full_where_nothing_has_changed() -> None:
    first = problem([[4.0, 1.0], [2.0, 1.0]], [1.0, 1.0])
    changed = replace(first, steps=first.steps / 2)
    always = ["makespan", "makespan", "max-min-fairness", "max-min-fairness"]
    assert _asked("optimal", [first, changed, first, changed], always) == ["isolated", "last", "last", ""]
    assert _asked("time-limit", [first, changed], ["makespan"] * 2) == ["isolated", "cut-short"]


def test_the_late_allocation_of_another_policy_is_none_of_this_ones() -> None:
    first = problem([[4.0, 1.0], [2.0, 1.0]], [1.0, 1.0])
    assert _asked("optimal", [first] * 2, ["makespan", "max-throughput"]) == ["isolated", "isolated"]


def test_what_was_cut_short_serves_only_where_nothing_was_found_in_full_before() -> None:
    first, changed = problem([[4.0, 1.0], [2.0, 1.0]], [1.0, 1.0]), problem([[1.0, 4.0], [1.0, 2.0]], [1.0, 1.0])
    for before, told in ((), "cut-short"), (("optimal",), "last"), (("time-limit",), "cut-short"):
        solutions = Solutions()
        for status in (*before, "time-limit"):
            solutions.solver = _AtOnce(status)
            x, shares_from = solutions.shares(first if status == "optimal" else changed, "makespan", aware=True)
        assert shares_from == told
        assert (x == solve(first if told == "last" else changed, "makespan", efficient=True).x).all()


class _AtOnce:
    """A solver whose answers have this status."""

    def __init__(self, status: str) -> None:
        self._status = status

    def solve(self, sought: Sought, budget: Budget) -> AllocationMatrix:
        return replace(solve(sought.problem, sought.policy, efficient=True), status=self._status)

    def late(self) -> None:
        return None
