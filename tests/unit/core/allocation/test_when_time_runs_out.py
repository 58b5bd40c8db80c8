"""A budget that ends: the best so far, the last allocation, or the isolated one, and the status says which."""

import numpy as np
import pytest

from support.allocation import assert_valid, drawn
from synergy_core.allocation import solve
from synergy_core.allocation.budget import Budget


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


@pytest.mark.parametrize("policy", ["hierarchical", "max-min-fairness-water-filling", "min-cost", "min-cost-slo"])
def test_what_was_found_before_the_end_is_kept(policy: str) -> None:
    made = drawn(2, 8)
    found = solve(made, policy, budget=_budget(1))
    assert found.status == "time-limit"
    assert found.note == ""
    assert_valid(made, found.x)
    assert found.x.any()
    assert found.objective <= solve(made, policy).objective + 1e-9
