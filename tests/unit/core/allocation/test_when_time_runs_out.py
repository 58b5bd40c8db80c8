"""A budget that ends: the best so far, the last allocation, or the isolated one, and the status says which."""

from dataclasses import replace

import numpy as np
import pytest

from support.allocation import assert_valid, drawn
from synergy_core.allocation import ALLOCATION_POLICIES, solve
from synergy_core.allocation.budget import Budget
from synergy_core.allocation.programme import Programme


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


def test_the_last_allocation_serves_where_there_is_one() -> None:
    made = drawn(1, 6)
    last = solve(made, "makespan").x
    found = solve(made, "finish-time-fairness", budget=_budget(0), last=last)
    assert (found.status, found.note) == ("time-limit", "the last allocation")
    assert np.allclose(found.x, last)


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
