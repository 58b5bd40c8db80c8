"""Few CPU points must be enough for the whole curve (section 3.1: 8 of 24)."""

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_core.profiling.adaptive_cpu_search import complete_curve, next_cpu_point
from synergy_core.profiling.cpu_grid import cpu_grid

Curve = Callable[[float], float]
grids = st.integers(10, 24).map(lambda points: cpu_grid(ceiling_millis=points * 1000, step_millis=1000))


def _search(grid: tuple[int, ...], curve: Curve, **settings: float) -> dict[int, float]:
    """Measure one point after the other until the search is done."""
    measured: dict[int, float] = {}
    while (point := next_cpu_point(grid, measured, **settings)) is not None:
        assert point not in measured
        measured[point] = curve(point / 1000)
    return measured


def _worst_error(grid: tuple[int, ...], curve: Curve, measured: dict[int, float]) -> float:
    found = complete_curve(grid, measured)
    return max(abs(speed - curve(c / 1000)) / curve(c / 1000) for c, speed in zip(grid, found, strict=True))


@given(grids, st.floats(0.05, 30.0), st.floats(0.01, 1000.0))
def test_a_curve_with_one_knee_is_within_a_tenth_everywhere_at_half_the_points(
    grid: tuple[int, ...], knee: float, scale: float
) -> None:
    def curve(cpus: float) -> float:
        return scale * min(cpus, knee)

    measured = _search(grid, curve)
    assert len(measured) <= len(grid) // 2
    assert _worst_error(grid, curve, measured) <= 0.10


@given(
    grids,
    st.floats(0.05, 1.0),
    st.sampled_from(
        [
            lambda shape, n: lambda c: 1 - math.exp(-c / (shape * n)),
            lambda shape, n: lambda c: c / (c + 2 * shape * n),
            lambda shape, _: lambda c: c**shape,
            lambda shape, _: lambda c: 1 / (shape + (1 - shape) / c),
            lambda shape, n: lambda c: (c**-4 + (shape * n) ** -4) ** -0.25,
        ]
    ),
)
def test_smooth_concave_curves_are_within_a_tenth_as_well(
    grid: tuple[int, ...], shape: float, family: Callable[[float, int], Curve]
) -> None:
    curve = family(shape, len(grid))
    measured = _search(grid, curve)
    assert len(measured) <= min(8, len(grid) // 2)
    assert _worst_error(grid, curve, measured) <= 0.10


@given(grids, st.floats(1.0, 24.0), st.randoms(use_true_random=False))
def test_the_curve_never_falls_whatever_the_noise(grid: tuple[int, ...], knee: float, rng: object) -> None:
    measured = _search(grid, lambda c: min(c, knee) * rng.uniform(0.8, 1.2))
    found = complete_curve(grid, measured)
    assert len(found) == len(grid)
    assert all(a <= b for a, b in pairwise(found))


@given(grids, st.floats(1.0, 24.0), st.integers(0, 3))
def test_the_search_goes_on_from_any_points_measured_so_far(grid: tuple[int, ...], knee: float, cut: int) -> None:
    """It keeps no state: forgetting everything but the measured points changes nothing."""
    measured = _search(grid, lambda c: min(c, knee))
    kept = dict(list(measured.items())[:cut])
    assert next_cpu_point(grid, kept) == ([*measured][cut] if cut < len(measured) else None)


def test_the_highest_point_comes_first_then_the_middle_then_the_half_with_the_knee() -> None:
    grid = cpu_grid(ceiling_millis=24000, step_millis=1000)
    assert list(_search(grid, lambda c: min(c, 16.5)))[:3] == [24000, 12000, 18000]
    assert list(_search(grid, lambda c: min(c, 3.5)))[:3] == [24000, 12000, 6000]


def test_an_insensitive_job_is_followed_down_to_the_lowest_point() -> None:
    grid = cpu_grid(ceiling_millis=24000, step_millis=1000)
    measured = _search(grid, lambda _: 5.0)
    assert min(measured) == 1000
    assert complete_curve(grid, measured) == (5.0,) * 24


def test_no_more_points_than_allowed_are_measured() -> None:
    grid = cpu_grid(ceiling_millis=24000, step_millis=1000)
    assert len(_search(grid, math.sqrt, max_points=4)) == 4
    assert len(_search(cpu_grid(ceiling_millis=4000, step_millis=1000), math.sqrt)) == 3
    assert len(_search((500,), math.sqrt)) == 1


@pytest.mark.parametrize("speed", [0.0, -1.0, math.nan, math.inf])
def test_a_measurement_that_cannot_be_is_refused_naming_the_point(speed: float) -> None:
    for search in (next_cpu_point, complete_curve):
        with pytest.raises(ValueError, match=r"measured\[2000\]: speed must be above 0"):
            search((1000, 2000), {2000: speed})


def test_a_point_that_is_not_on_the_grid_is_refused() -> None:
    with pytest.raises(ValueError, match=r"measured\[1500\]: 1500 is not a point of the grid"):
        next_cpu_point((1000, 2000), {1500: 1.0})


@pytest.mark.parametrize("grid", [(), (2000, 1000), (0, 1000)])
def test_a_grid_that_does_not_ascend_is_refused(grid: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="grid must ascend"):
        next_cpu_point(grid, {})


def test_a_curve_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="measured is empty"):
        complete_curve((1000, 2000), {})


def test_points_above_the_highest_measured_one_count_as_fast_as_that() -> None:
    assert complete_curve((1000, 2000, 3000), {2000: 4.0}) == (2.0, 4.0, 4.0)
