"""Steps that no policy can use, and steps that nobody knows."""

import numpy as np
import pytest

from support.planner.allocation import problem
from synergy_core.model.snapshot import FieldError
from synergy_core.policies.allocation import solve


def test_steps_below_zero_are_refused_by_name() -> None:
    with pytest.raises(FieldError, match="steps_remaining"):
        solve(problem([[1.0], [1.0]], [1], steps=[10.0, -1.0]), "max-min-fairness")


def test_a_policy_that_needs_no_steps_takes_jobs_of_unknown_length() -> None:
    found = solve(problem([[1.0], [1.0]], [1], steps=[10.0, np.nan]), "max-min-fairness")
    assert found.x == pytest.approx(np.array([[0.5], [0.5]]))
