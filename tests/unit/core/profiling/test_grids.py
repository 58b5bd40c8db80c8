"""Axes of the sensitivity matrix."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_core.profiling.cpu_grid import cpu_grid
from synergy_core.profiling.memory_model import memory_grid

sizes = st.integers(1, 100_000)


def test_multiples_of_the_step_and_the_ceiling() -> None:
    assert cpu_grid(ceiling_millis=3500, step_millis=1000) == (1000, 2000, 3000, 3500)
    assert cpu_grid(ceiling_millis=3000, step_millis=1000) == (1000, 2000, 3000)
    assert cpu_grid(ceiling_millis=500, step_millis=1000) == (500,)


def test_nothing_below_the_floor() -> None:
    assert cpu_grid(ceiling_millis=4000, step_millis=1000, floor_millis=1500) == (2000, 3000, 4000)


@given(sizes, st.integers(100, 100_000), st.integers(0, 100_000))
def test_a_cpu_grid_ascends_from_the_floor_to_the_ceiling(ceiling: int, step: int, floor: int) -> None:
    if floor <= ceiling:
        grid = cpu_grid(ceiling_millis=ceiling, step_millis=step, floor_millis=floor)
        assert list(grid) == sorted(set(grid))
        assert floor <= grid[0]
        assert grid[-1] == ceiling


@pytest.mark.parametrize(
    ("sizes", "field"),
    [((0, 1, 0), "ceiling_millis"), ((1, 0, 0), "step_millis"), ((1000, 100, 1001), "floor_millis")],
)
def test_an_impossible_cpu_grid_is_refused(sizes: tuple[int, int, int], field: str) -> None:
    with pytest.raises(ValueError, match=field):
        cpu_grid(ceiling_millis=sizes[0], step_millis=sizes[1], floor_millis=sizes[2])


def test_memory_points_begin_with_what_the_processes_need() -> None:
    assert memory_grid(ceiling_bytes=350, step_bytes=100, floor_bytes=120) == (120, 200, 300, 350)
    assert memory_grid(ceiling_bytes=300, step_bytes=100) == (100, 200, 300)
    assert memory_grid(ceiling_bytes=120, step_bytes=100, floor_bytes=120) == (120,), "the processes take all there is"


@pytest.mark.parametrize(
    ("sizes", "field"),
    [((0, 1, 0), "ceiling_bytes"), ((1, 0, 0), "step_bytes"), ((1000, 100, 1001), "floor_bytes")],
)
def test_an_impossible_memory_grid_is_refused(sizes: tuple[int, int, int], field: str) -> None:
    with pytest.raises(ValueError, match=field):
        memory_grid(ceiling_bytes=sizes[0], step_bytes=sizes[1], floor_bytes=sizes[2])
