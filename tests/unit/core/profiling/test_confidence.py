"""Noise in, confidence out."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from synergy_core.profiling.adaptive_cpu_search import next_cpu_point
from synergy_core.profiling.confidence import LEVEL, PointRun, estimates, next_repeat, run_to_run, t_quantile
from synergy_core.profiling.cpu_grid import cpu_grid

GRID = cpu_grid(ceiling_millis=24000, step_millis=1000)
BLOCKS = 10


def true_speed(cpu_millis: int, knee: float) -> float:
    return min(cpu_millis / 1000, knee)


def one_run(rng: random.Random, speed: float, between: float, within: float) -> PointRun:
    """A run of ten blocks of steps: `between` is the relative deviation of a run, `within` that of its mean."""
    blocks = [rng.gauss(0.0, within * math.sqrt(BLOCKS)) for _ in range(BLOCKS)]
    mean = sum(blocks) / BLOCKS
    error = math.sqrt(sum((block - mean) ** 2 for block in blocks) / (BLOCKS - 1) / BLOCKS)
    return PointRun(max(1e-9, speed * (1.0 + rng.gauss(0.0, between) + mean)), error)


def series(
    rng: random.Random, between: float, within: float, least_runs: int
) -> tuple[dict[int, list[PointRun]], float]:
    """All runs of a series as the operator makes them, and the knee of the true curve."""
    knee = rng.uniform(2, 20)
    points: dict[int, list[PointRun]] = {}
    while True:
        means = {point: sum(run.steps_per_s for run in runs) / len(runs) for point, runs in points.items()}
        point = next_cpu_point(GRID, means)
        if point is None:
            point = next_repeat(points, least_runs=least_runs)
        if point is None:
            return points, knee
        points.setdefault(point, []).append(one_run(rng, true_speed(point, knee), between, within))


@pytest.mark.parametrize(
    ("between", "within", "least_runs"),
    [
        (0.0, 0.01, 1),  # noise within runs shows in a single one
        (0.0, 0.03, 1),
        (0.0, 0.08, 1),
        (0.01, 0.005, 2),  # noise between runs takes two of each point
        (0.03, 0.005, 2),
        (0.03, 0.02, 2),
        (0.08, 0.01, 2),
        (0.08, 0.01, 3),
    ],
)
def test_the_interval_covers_the_true_speed_at_the_stated_rate(between: float, within: float, least_runs: int) -> None:
    rng = random.Random(7)
    covered = asked = 0
    for _ in range(400):
        points, knee = series(rng, between, within, least_runs)
        for point, estimate in estimates(points).items():
            covered += estimate.low <= true_speed(point, knee) <= estimate.high
            asked += 1
    assert covered / asked >= LEVEL - 0.015, "some 2,000 intervals: three standard deviations are 0.015"


@pytest.mark.parametrize(("between", "least_runs", "most"), [(0.01, 2, 0.06), (0.03, 2, 0.15), (0.03, 3, 0.10)])
def test_the_intervals_are_no_wider_than_the_noise_asks_for(between: float, least_runs: int, most: float) -> None:
    rng = random.Random(3)
    widths = []
    for _ in range(100):
        points, _ = series(rng, between, 0.002, least_runs)
        widths.append(max(estimate.uncertainty for estimate in estimates(points).values()))
    assert sorted(widths)[90] <= most


def test_quiet_points_are_measured_once() -> None:
    assert next_repeat({1000: [PointRun(1.0, 0.01)], 2000: [PointRun(2.0, 0.02)]}) is None


def test_a_noisy_point_is_measured_again_until_the_repeats_are_spent() -> None:
    points = {1000: [PointRun(1.0, 0.01)], 2000: [PointRun(2.0, 0.2)], 3000: [PointRun(2.5, 0.1)]}
    again = []
    while (point := next_repeat(points, max_repeats=3)) is not None:
        again.append(point)
        points[point].append(points[point][0])
    assert again == [2000, 3000, 2000], "the noisiest first, no point twice as often as another"


def test_points_that_contradict_each_other_are_measured_again_though_each_seems_sure() -> None:
    points = {1000: [PointRun(1.0, 0.01)], 2000: [PointRun(3.0, 0.01)], 3000: [PointRun(2.0, 0.01)]}
    first = next_repeat(points)
    assert first in (2000, 3000)
    points[first].append(PointRun(2.1, 0.01))
    assert next_repeat(points) is not None
    assert next_repeat({1000: [PointRun(1.0, 0.01)], 2000: [PointRun(3.0, 0.01)], 3000: [PointRun(2.99, 0.01)]}) is None
    assert next_repeat({1000: [PointRun(1.0, 0.0)], 2000: [PointRun(3.0, 0.0)], 3000: [PointRun(2.9, 0.0)]}) is None, (
        "it is too small"
    )
    assert next_repeat({1000: [PointRun(21.0, 0.0)], 2000: [PointRun(20.0, 0.0)]}) is None, "exactly half of 10 %"
    assert next_repeat({1000: [PointRun(21.1, 0.0)], 2000: [PointRun(20.0, 0.0)]}) == 2000


def test_every_point_gets_the_least_number_of_runs_from_the_highest_down() -> None:
    points = {1000: [PointRun(1.0, 0.0)], 2000: [PointRun(2.0, 0.0)]}
    assert next_repeat(points, least_runs=2, max_repeats=0) == 2000
    points[2000].append(PointRun(2.0, 0.0))
    assert next_repeat(points, least_runs=2, max_repeats=0) == 1000
    points[1000].append(PointRun(1.0, 0.0))
    assert next_repeat(points, least_runs=2, max_repeats=0) is None


def test_the_spread_between_runs_is_pooled_over_all_points() -> None:
    once = {1: [PointRun(1.0, 0.01)], 2: [PointRun(10.0, 0.01)]}
    assert run_to_run(once) is None
    twice = {**once, 3: [PointRun(9.0, 0.01), PointRun(11.0, 0.01)]}
    assert run_to_run(twice) == pytest.approx(math.sqrt(2 * 0.1**2))
    assert estimates(twice)[1].uncertainty > 1.0, "one pair says little, and that it differed by a fifth"
    assert estimates(once)[1].uncertainty == pytest.approx(0.02262)


@given(st.lists(st.tuples(st.floats(0.1, 100), st.floats(0, 0.5)), min_size=1, max_size=5))
def test_an_interval_is_around_the_mean_and_never_below_zero(runs: list[tuple[float, float]]) -> None:
    (found,) = estimates({0: [PointRun(*run) for run in runs]}).values()
    assert 0.0 <= found.low <= found.steps_per_s <= found.high
    assert found.steps_per_s == pytest.approx(sum(speed for speed, _ in runs) / len(runs))


@pytest.mark.parametrize(
    ("freedom", "value"), [(1, 12.706), (9, 2.262), (10, 2.228), (11, 2.201), (20, 2.086), (60, 2.000)]
)
def test_student_s_t(freedom: int, value: float) -> None:
    assert t_quantile(freedom) == pytest.approx(value, abs=0.001)


@pytest.mark.parametrize("freedom", [11, 12, 15, 30, 100])
def test_the_expansion_of_student_s_t_is_off_by_its_next_term_only(freedom: int) -> None:
    assert t_quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=2.0 / freedom**4)


@pytest.mark.parametrize(
    ("speed", "error", "field"),
    [(0.0, 0.0, "steps_per_s"), (math.nan, 0.0, "steps_per_s"), (1.0, -0.1, "relative_error")],
)
def test_a_run_that_cannot_be_is_refused(speed: float, error: float, field: str) -> None:
    with pytest.raises(ValueError, match=field):
        PointRun(speed, error)


def test_a_point_without_runs_is_refused() -> None:
    with pytest.raises(ValueError, match=r"points\[5\] has no runs"):
        estimates({5: []})
