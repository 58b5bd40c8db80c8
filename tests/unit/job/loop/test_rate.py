"""Throughput over a sliding window."""

from hypothesis import given
from hypothesis import strategies as st

from synergy_job.loop.rate import RateWindow


def test_nothing_is_known_before_two_steps() -> None:
    rate = RateWindow()
    assert rate.steps_per_second(10.0) == 0.0
    rate.add(5, 10.0)
    assert rate.steps_per_second(11.0) == 0.0


@given(st.floats(0.0001, 100), st.integers(2, 3000))
def test_even_steps_are_measured_right_whatever_their_length(seconds: float, steps: int) -> None:
    rate = RateWindow()
    for step in range(steps):
        rate.add(step, step * seconds)
    assert abs(rate.steps_per_second((steps - 1) * seconds) * seconds - 1) < 0.01


def test_a_change_of_speed_is_seen_within_the_window() -> None:
    rate = RateWindow(window_s=10)
    for step in range(100):
        rate.add(step, step * 1.0)
    for step in range(100, 200):
        rate.add(step, 99 + (step - 99) * 0.5)
    assert abs(rate.steps_per_second(149.5) - 2.0) < 0.1


def test_the_rate_falls_when_steps_stop() -> None:
    rate = RateWindow(window_s=10)
    for step in range(21):
        rate.add(step, step * 0.5)
    assert rate.steps_per_second(10.5) == 2.0
    assert rate.steps_per_second(110) < 0.25


def test_memory_stays_small_however_fast_the_steps_are() -> None:
    rate = RateWindow(window_s=30)
    for step in range(100_000):
        rate.add(step, step * 0.0005)
    assert len(rate._points) <= 513
    assert abs(rate.steps_per_second(50.0) - 2000) < 10
