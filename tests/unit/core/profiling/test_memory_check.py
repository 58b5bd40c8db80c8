"""Where the memory model is checked, and how far it is off."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_core.profiling.memory_check import check_point, model_error, seen_bandwidth, thinned
from synergy_core.profiling.memory_model import MemoryModel, hit_rate, memory_grid, steps_per_s

# 1,000 samples of 1,000 bytes, 100 in a step: 2 steps a second from storage alone.
MODEL = MemoryModel(
    dataset_bytes=1_000_000, samples=1_000, batch_size=100, storage_bytes_per_s=200_000.0, process_bytes=500_000
)
AXIS = memory_grid(ceiling_bytes=1_500_000, step_bytes=100_000, floor_bytes=500_000)


def test_the_model_is_checked_where_storage_slows_the_job_to_some_two_thirds() -> None:
    memory = check_point(10.0, AXIS, MODEL)
    assert memory is not None
    assert steps_per_s(10.0, memory, MODEL) == pytest.approx(200_000 / (100_000 * 0.3))


def test_where_storage_never_slows_the_job_it_is_checked_without_any_cache() -> None:
    assert check_point(1.5, AXIS, MODEL) == 500_000


def test_where_all_data_is_always_in_memory_there_is_nothing_to_check() -> None:
    assert check_point(10.0, (1_500_000, 2_000_000), MODEL) is None


@given(st.floats(0.1, 1000.0))
def test_what_is_checked_is_a_point_with_less_than_all_data(full: float) -> None:
    memory = check_point(full, AXIS, MODEL)
    assert memory in AXIS
    assert hit_rate(memory, MODEL) < 1.0


def test_a_run_without_cache_shows_the_bandwidth() -> None:
    assert seen_bandwidth(2.0, dataset_bytes=1_000_000, samples=1_000, batch_size=100) == 200_000.0


def test_the_error_is_that_of_the_worst_point() -> None:
    assert model_error([(10.0, 10.0), (9.0, 10.0), (6.0, 5.0)]) == pytest.approx(0.2)
    assert model_error([]) is None


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=64, unique=True).map(sorted), st.integers(2, 70))
def test_a_thinned_axis_keeps_its_ends_and_the_bound(axis: list[int], most: int) -> None:
    found = thinned(axis, most)
    assert len(found) == min(most, len(axis))
    assert list(found) == sorted(set(found))
    assert (found[0], found[-1]) == (axis[0], axis[-1])
    assert set(found) <= set(axis)


def test_less_than_two_points_are_no_axis() -> None:
    with pytest.raises(ValueError, match="most must be at least 2"):
        thinned((1, 2, 3), 1)


def test_an_axis_is_thinned_evenly_by_position_and_keeps_its_ends() -> None:
    assert thinned((1, 2, 3, 5, 8, 13, 21, 34, 55), 5) == (1, 3, 8, 21, 55)
    assert thinned((1, 2, 3, 5, 8, 13), 2) == (1, 13)
