"""Memory model, sensitivity matrix and demand vector."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synergy_core.model.snapshot import Profile
from synergy_core.profiling.demand import Demand, demand_vector
from synergy_core.profiling.memory_model import MemoryModel, steps_per_s
from synergy_core.profiling.sensitivity import sensitivity_matrix

# 1,000 samples of 1,000 bytes; a step reads 100 samples, 100,000 bytes; storage gives 200,000 bytes a second.
MODEL = MemoryModel(
    dataset_bytes=1_000_000, samples=1_000, batch_size=100, storage_bytes_per_s=200_000.0, process_bytes=500_000
)


@pytest.mark.parametrize(
    ("memory", "speed"),
    [
        (1_500_000, 10.0),  # all cached: the CPUs set the pace
        (9_000_000, 10.0),
        (500_000, 2.0),  # nothing cached: 2 batches a second from storage
        (1_000_000, 4.0),  # half cached: half the bytes for each batch
        (1_400_000, 10.0),  # a tenth missing: storage could do 20
        (499_999, 0.0),  # not even the processes fit
    ],
)
def test_the_slower_of_computing_and_fetching_sets_the_pace(memory: int, speed: float) -> None:
    assert steps_per_s(10.0, memory, MODEL) == pytest.approx(speed)


@given(st.floats(0.1, 100.0), st.integers(0, 2_000_000), st.integers(0, 2_000_000))
def test_more_memory_is_never_slower_and_never_faster_than_full_memory(full: float, a: int, b: int) -> None:
    low, high = sorted((a, b))
    assert steps_per_s(full, low, MODEL) <= steps_per_s(full, high, MODEL) <= full


@pytest.mark.parametrize("field", ["dataset_bytes", "samples", "batch_size", "storage_bytes_per_s"])
def test_a_model_without_data_or_storage_is_refused(field: str) -> None:
    with pytest.raises(ValueError, match=f"{field} must be above 0"):
        replace(MODEL, **{field: 0})


def test_negative_process_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="process_bytes must be at least 0"):
        replace(MODEL, process_bytes=-1)


def test_the_matrix_has_a_row_per_cpu_point_and_a_column_per_memory_point() -> None:
    matrix = sensitivity_matrix((1000, 2000), (3.0, 6.0), (500_000, 1_000_000, 1_500_000), MODEL)
    assert matrix.steps_per_s == ((2.0, 3.0, 3.0), (2.0, 4.0, 6.0))


def test_without_a_model_memory_does_not_matter() -> None:
    assert sensitivity_matrix((1000,), (3.0,), (1, 2), None).steps_per_s == ((3.0, 3.0),)


def test_a_curve_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="curve has 1 values for 2 CPU points"):
        sensitivity_matrix((1000, 2000), (3.0,), (1,), None)


def test_the_demand_is_the_smallest_that_saturates() -> None:
    matrix = sensitivity_matrix((1000, 2000, 3000), (3.0, 5.9, 6.0), (500_000, 1_000_000, 1_400_000, 1_500_000), MODEL)
    assert demand_vector(matrix, gpus=4) == Demand(gpus=4, cpu_millis=2000, memory_bytes=1_400_000)
    assert demand_vector(matrix, gpus=4, tolerance=0.0) == Demand(gpus=4, cpu_millis=3000, memory_bytes=1_400_000)


def test_an_insensitive_job_demands_the_least_of_everything() -> None:
    flat = Profile(cpu_millis=(1, 2), memory_bytes=(1, 2), steps_per_s=((5.0, 5.0), (5.0, 5.0)))
    assert demand_vector(flat, gpus=1) == Demand(gpus=1, cpu_millis=1, memory_bytes=1)


@pytest.mark.parametrize("tolerance", [-0.1, 1.0])
def test_a_tolerance_out_of_range_is_refused(tolerance: float) -> None:
    flat = Profile(cpu_millis=(1,), memory_bytes=(1,), steps_per_s=((5.0,),))
    with pytest.raises(ValueError, match="tolerance must be at least 0 and below 1"):
        demand_vector(flat, gpus=1, tolerance=tolerance)
