"""A step of the wall clock is followed once it has lasted, a drift at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_kube.steady_clock import PATIENCE_S, TOLERANCE_S, SteadyClock


class Machine:
    """A machine whose wall clock somebody sets."""

    def __init__(self) -> None:
        self.monotonic = 1000.0
        self.ahead = 1.7e9
        self.clock = SteadyClock(lambda: self.monotonic + self.ahead, lambda: self.monotonic)

    def after(self, seconds: float, *, step: float = 0.0) -> float:
        self.monotonic += seconds
        self.ahead += step
        return self.clock() - 1.7e9


def test_a_clock_that_is_set_wrong_and_right_again_changes_nothing() -> None:
    machine = Machine()
    assert machine.after(1.0) == pytest.approx(1001.0)
    assert machine.after(1.0, step=86400.0) == pytest.approx(1002.0)
    assert machine.after(PATIENCE_S - 2.0) == pytest.approx(1000.0 + PATIENCE_S)
    assert machine.after(1.0, step=-86400.0) == pytest.approx(1001.0 + PATIENCE_S)
    assert machine.after(2 * PATIENCE_S) == pytest.approx(1001.0 + 3 * PATIENCE_S)
    assert machine.clock.steps == 0


@pytest.mark.parametrize("step", [86400.0, -86400.0, 3.0])
def test_a_step_that_lasts_is_followed(step: float) -> None:
    machine = Machine()
    assert machine.after(1.0, step=step) == pytest.approx(1001.0)
    assert machine.after(PATIENCE_S) == pytest.approx(1001.0 + PATIENCE_S + step)
    assert machine.clock.steps == 1
    assert machine.after(1.0) == pytest.approx(1002.0 + PATIENCE_S + step)


def test_another_step_meanwhile_begins_the_wait_anew() -> None:
    machine = Machine()
    machine.after(1.0, step=100.0)
    machine.after(PATIENCE_S - 1.0)
    assert machine.after(0.5, step=100.0) == pytest.approx(1000.5 + PATIENCE_S)
    assert machine.after(PATIENCE_S - 1.0) == pytest.approx(999.5 + 2 * PATIENCE_S)
    assert machine.after(1.0) == pytest.approx(1200.5 + 2 * PATIENCE_S)


@given(st.lists(st.tuples(st.floats(0.01, 20.0), st.floats(-TOLERANCE_S * 0.99, TOLERANCE_S * 0.99)), max_size=30))
def test_drift_is_followed_at_once(moves: list[tuple[float, float]]) -> None:
    machine = Machine()
    for seconds, drift in moves:
        assert machine.after(seconds, step=drift) == pytest.approx(machine.monotonic + machine.ahead - 1.7e9, abs=1e-3)
    assert machine.clock.steps == 0
