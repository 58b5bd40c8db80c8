"""A budget that ends: the best so far, or the isolated allocation, and the status says which."""

from dataclasses import replace

import numpy as np
import pytest

from support.planner.allocation import assert_valid, drawn
from synergy_core.policies.allocation import ALLOCATION_POLICIES, solve, solve_in_time
from synergy_core.policies.allocation.budget import Budget, OutOfTimeError
from synergy_core.policies.allocation.policies.cost import slo_throughput
from synergy_core.policies.allocation.problem import effective_throughput
from synergy_core.policies.allocation.programme.programme import Programme


def _budget(solves: int) -> Budget:
    """Time enough for so many programmes."""
    left = iter([float("inf")] * solves)
    return Budget(lambda: next(left, 0.0))


def test_no_time_at_all_gives_the_isolated_allocation() -> None:
    made = drawn(1, 6)
    found = solve(made, "max-min-fairness", budget=_budget(0))
    assert (found.status, found.note) == ("time-limit", "the isolated allocation")
    assert found.objective == pytest.approx(solve(made, "isolated").objective)
    assert_valid(made, found.x)


def test_where_nothing_was_found_a_caller_may_be_told_instead() -> None:
    with pytest.raises(OutOfTimeError):
        solve_in_time(drawn(1, 6), "max-min-fairness", budget=_budget(0))


def test_what_stands_in_for_an_allocation_with_deadlines_says_that_it_keeps_none() -> None:
    made = drawn(1, 6)
    tight = replace(made, slo=np.where(np.arange(6) == 0, made.steps / made.throughputs.max(axis=1), np.inf))
    found = solve(tight, "min-cost-slo", budget=_budget(0))
    assert (found.status, found.note) == ("time-limit", "the isolated allocation, which keeps no SLOs")
    needed = slo_throughput(tight)
    assert (effective_throughput(tight, found.x) < needed).any()
    kept = solve(tight, "min-cost-slo", budget=_budget(1))
    assert (kept.status, kept.note) == ("time-limit", "")
    assert (effective_throughput(tight, kept.x) >= needed * (1 - 1e-6)).all(), "one that was cut short keeps them"


@pytest.mark.parametrize("policy", ["max-min-fairness", "makespan", "finish-time-fairness"])
def test_what_was_cut_short_says_how_good_it_could_be_at_most(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pairs in the first programme, what it says serves until pairs have been added and solved with."""
    monkeypatch.setattr(Programme, "_first_columns", lambda programme: np.arange(programme.acts.alone))
    made = replace(drawn(6, 14, pairs=True), workers=np.full(3, 2.0))
    best = solve(made, policy).objective
    notes = set()
    for solves in range(1, 30):
        found = solve(made, policy, budget=_budget(solves))
        if found.status == "optimal":
            break
        if not found.note.endswith("allocation"):
            notes.add(found.note)
            bound = float(found.note.rpartition(" ")[2])
            if ALLOCATION_POLICIES[policy].less_is_better:
                assert bound <= best * (1 + 1e-5)
            else:
                assert bound >= best * (1 - 1e-5)
    assert notes


@pytest.mark.parametrize("policy", ["hierarchical", "max-min-fairness-water-filling", "min-cost", "min-cost-slo"])
def test_what_was_found_before_the_end_is_kept(policy: str) -> None:
    made = drawn(2, 8)
    found = solve(made, policy, budget=_budget(1))
    assert found.status == "time-limit"
    assert found.note == ""
    assert_valid(made, found.x)
    assert found.x.any()
    assert found.objective <= solve(made, policy).objective + 1e-9


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::RuntimeWarning")
def test_a_convex_programme_ends_with_the_budget_too() -> None:
    made = drawn(4, 6)
    cut = solve(made, "strategy-proof", budget=Budget(lambda: 1e-7))
    assert (cut.status, cut.note) == ("time-limit", "the isolated allocation")
    assert solve(made, "strategy-proof", budget=Budget(lambda: 600.0)).status == "optimal"
