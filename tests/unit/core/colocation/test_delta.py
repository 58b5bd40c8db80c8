import pytest

from synergy_core.colocation.delta import delta, delta_of_fractions


def test_three_jobs_gain_although_each_is_slower() -> None:
    # figure 4.1: every t' is above its t, the longest is below the sum
    assert delta([1.0, 2.0, 1.5], [2.0, 3.0, 2.5]) == pytest.approx(1.5)


def test_two_alike_that_take_turns_gain_nothing() -> None:
    assert delta_of_fractions([0.5, 0.5]) == pytest.approx(1.0)
    assert delta_of_fractions([0.9, 0.6]) == pytest.approx(1.2)


@pytest.mark.parametrize(("alone", "shared"), [([], []), ([1.0], [1.0, 2.0]), ([1.0, 0.0], [1.0, 1.0])])
def test_times_that_cannot_be_are_refused(alone: list[float], shared: list[float]) -> None:
    with pytest.raises(ValueError, match=r"give both|above 0"):
        delta(alone, shared)
