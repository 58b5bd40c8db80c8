"""From moments to a rate."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_profiler.measurement import Sample, measure

PERIOD_S = 0.1


def throttled(first: int, cost_s: float, quota_s: float, at_least: int, seconds: float) -> list[Sample]:
    """Moments at which the steps of one busy process end under a CPU limit of `quota_s` in each period."""
    samples: list[Sample] = []
    step = first
    while len(samples) < 2 or samples[-1].step - first < at_least or samples[-1].at - samples[0].at < seconds:
        periods, used = divmod(step * cost_s, quota_s)
        samples.append(Sample(step, periods * PERIOD_S + used))
        step += 1
    return samples


@given(st.floats(0.001, 10), st.integers(2, 200), st.integers(0, 50))
def test_even_steps(seconds: float, steps: int, first: int) -> None:
    found = measure([Sample(first + i, 5 + i * seconds) for i in range(steps + 1)])
    assert found.steps_per_second == pytest.approx(1 / seconds, rel=1e-6)
    assert found.relative_error == pytest.approx(0, abs=1e-6)
    assert found.steps == steps
    assert found.seconds == pytest.approx(steps * seconds)


@given(st.integers(3, 60), st.floats(0.003, 0.2), st.floats(0.01, 0.09))
def test_bursts_under_a_cpu_limit_do_not_move_the_rate(first: int, cost_s: float, quota_s: float) -> None:
    """Whatever part of a period the first and the last step happen to fall in."""
    found = measure(throttled(first, cost_s, quota_s, at_least=50, seconds=2.0))
    assert found.steps_per_second == pytest.approx(quota_s / PERIOD_S / cost_s, rel=0.02)
    assert found.relative_error < 0.15


def test_pauses_do_not_move_the_rate() -> None:
    """An evaluation of 30 s after step 20."""
    found = measure([Sample(i, i * 0.5 + (30.0 if i > 20 else 0.0), paused=30.0 if i > 20 else 0.0) for i in range(50)])
    assert found.steps_per_second == pytest.approx(2.0)
    assert found.relative_error == pytest.approx(0, abs=1e-6)


def test_lost_messages_do_not_move_the_rate() -> None:
    found = measure([Sample(i, i * 0.5) for i in (5, 6, 9, 10, 17, 30)])
    assert found.steps_per_second == pytest.approx(2.0)
    assert found.steps == 25


def test_a_rate_that_wanders_has_a_large_error() -> None:
    slow_then_fast = [Sample(i, i * 1.0 if i < 25 else 25 + (i - 25) * 0.05) for i in range(51)]
    assert measure(slow_then_fast).relative_error > 0.25


@pytest.mark.parametrize("shape", [1.0, 4.0, 100.0])
def test_the_true_rate_lies_within_the_error_as_often_as_it_should(shape: float) -> None:
    """Steps of random times, 0.1 s in the mean: Student's t with nine degrees of freedom for ten blocks, 95 %."""
    rng = random.Random(2)
    covered, runs = 0, 1500
    for _ in range(runs):
        at, samples = 0.0, [Sample(0, 0.0)]
        for step in range(1, 51):
            at += rng.gammavariate(shape, 0.1 / shape)
            samples.append(Sample(step, at))
        found = measure(samples)
        covered += abs(1 / found.steps_per_second / 0.1 - 1) <= 2.262 * found.relative_error
    assert 0.93 <= covered / runs <= 0.97


def test_two_moments_give_a_rate_without_an_error() -> None:
    found = measure([Sample(0, 1.0), Sample(4, 3.0)])
    assert (found.steps_per_second, found.relative_error) == (2.0, 0.0)


@pytest.mark.parametrize("samples", [[Sample(3, 1.0)], [Sample(3, 1.0), Sample(3, 2.0)]])
def test_no_step_is_no_rate(samples: list[Sample]) -> None:
    with pytest.raises(ValueError, match="two moments with a step between them"):
        measure(samples)
