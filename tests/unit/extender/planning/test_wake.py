"""When the next pass may begin."""

import pytest

from synergy_extender.planning.wake import rest_s


@pytest.mark.parametrize(
    ("computed_s", "planned_s", "rest"),
    [(0.0, 0.0, 0.0), (0.1, 0.0, 0.2), (0.0, 0.3, 0.3), (0.1, 0.3, 0.5), (0.4, 0.3, 1.0)],
)
def test_a_pass_leaves_the_verbs_two_parts_in_three_of_the_interpreter_and_half_of_a_core(
    computed_s: float, planned_s: float, rest: float
) -> None:
    assert rest_s(computed_s, planned_s) == pytest.approx(rest)
